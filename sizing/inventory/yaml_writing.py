"""The form of the inventory file as YAML: sections in blocks, small things in one line.

Texts are quoted wherever any YAML reader might take them for something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from sizing.inventory.fields import plain_decimal

# Texts that every reader of YAML 1.1 and 1.2 takes for texts, in blocks and in flow.
_SAFE = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@+-]*(?:[: ][A-Za-z0-9_./@+-]+)*\Z", re.ASCII)
# A time, and nothing else that begins with a digit, stays unquoted: readers make a time of it, or a text.
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z\Z", re.ASCII)
_WORDS = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"])
_TIMES = frozenset({"measured_at", "started_at"})
_WIDTH = 108


def to_yaml(form: dict[str, Any]) -> str:
    """The document, with a final line end."""
    lines: list[str] = []
    for key, value in form.items():
        if isinstance(value, list) and value:
            lines.append(f"{key}:")
            for item in value:
                lines.extend(_item(item, "  "))
        else:
            lines.append(f"{key}: {_flow(value)}")
    return "\n".join(lines) + "\n"


def _item(value: Any, indent: str) -> Iterator[str]:
    """An item of a list: in one line where it is small, else a line for each key."""
    blocks = {key for key, part in value.items() if _is_block(key, part)}
    if "placement" in blocks and len(_flow(value["placement"])) < _WIDTH - 20:
        blocks.remove("placement")
    if not blocks:
        line = f"{indent}- {_flow(value)}"
        if len(line) <= _WIDTH or "name" not in value:
            yield line
            return
    lead = f"{indent}- "
    for key, part in value.items():
        if key in blocks:
            yield f"{lead}{_text(key)}:"
            for item in part:
                yield from _item(item, f"{indent}    ")
        else:
            yield f"{lead}{_text(key)}: {_flow(part, key)}"
        lead = f"{indent}  "


def _is_block(key: str, part: Any) -> bool:
    if key not in ("gpus", "variants", "placement") or not isinstance(part, list):
        return False
    return bool(part) and isinstance(part[0], dict)


def _flow(value: Any, key: str = "") -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(k)}: {_flow(v, k)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(part) for part in value) + "]"
    if isinstance(value, str):
        return value if key in _TIMES and _TIME.match(value) else _text(value)
    if isinstance(value, Decimal):
        return plain_decimal(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _text(text: str) -> str:
    if _SAFE.match(text) and text.lower() not in _WORDS:
        return text
    return '"' + "".join(_escaped(c) for c in text) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
