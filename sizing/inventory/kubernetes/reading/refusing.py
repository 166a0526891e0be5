"""What people bring by mistake instead of a list, and what they should bring."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sizing.inventory.kubernetes.texts import mapping, text, whole
from sizing.inventory.yaml_reading import UnreadableError

ASK = "use `kubectl get nodes,pods -A -o json`"

_DESCRIBE = re.compile(r"\s*Name:[ \t]+\S")
_TABLE = re.compile(r"\s*(?:NAMESPACE[ \t]+)?NAME[ \t]{2,}[A-Z]")
_ERROR = re.compile(
    r"\s*((?:Error from server|error:|Unable to connect|The connection to the server|No resources).*)"
)
_LONGEST = 500


def refuse_what_it_is_not(head: str) -> None:
    """Refuse a text that begins like something else than JSON or YAML."""
    if _DESCRIBE.match(head):
        raise UnreadableError(f"this looks like `kubectl describe`; {ASK}")
    if _TABLE.match(head):
        raise UnreadableError(f"this looks like the table of `kubectl get`; {ASK}")
    error = _ERROR.match(head)
    if error:
        raise UnreadableError(f"this is what kubectl says instead of a list: {_one_line(error[1])}")
    if head.lstrip().startswith("<"):
        raise UnreadableError(f"this is HTML or XML, as of a page to sign in; {ASK}")
    if "\0" in head[:1000]:
        raise UnreadableError(f"this is no text; {ASK}")


def refuse_status(status: Mapping[str, Any]) -> None:
    """Refuse what the API answers instead of a list, with its code and message."""
    code = whole(status.get("code"))
    words = " ".join(filter(None, (str(code) if code else "", text(status.get("reason")))))
    message = _one_line(text(status.get("message")))
    said = ": ".join(filter(None, (words, message))) or "without a message"
    raise UnreadableError(f"this is a Kubernetes Status object, not a list: {said}")


def refuse_document(document: Mapping[str, Any]) -> None:
    """Refuse a mapping that is no Kubernetes object."""
    if document.get("kind") == "Config" and "clusters" in document:
        raise UnreadableError(f"this is a kubeconfig, not a list of objects; {ASK}")
    if document.get("kind"):
        return
    if "version" in document and any(isinstance(document.get(key), list) for key in ("nodes", "models")):
        raise UnreadableError("this is an inventory file; `manage.py load_inventory` reads it")
    if mapping(document.get("object")).get("kind") and document.get("type"):
        raise UnreadableError(f"these are the events of a watch, not a list; {ASK}")
    raise UnreadableError(f"this is no Kubernetes object: it has no kind; {ASK}")


def _one_line(words: str) -> str:
    found = " ".join(words.split())
    found = found if found.isprintable() else ascii(found)
    return found if len(found) <= _LONGEST else f"{found[: _LONGEST - 1]}…"
