"""Command lines and environments of containers, without what may be a secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sizing.inventory.kubernetes.texts import mappings, text

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"

_MOST_WORDS = 500
_LONGEST_WORD = 32_768
_KEPT = frozenset(
    {
        "MODEL",
        "MODEL_ID",
        "MODEL_NAME",
        "MODEL_PATH",
        "HF_MODEL_ID",
        "SERVED_MODEL_NAME",
        "PIPELINE_PARALLEL_SIZE",
        "TENSOR_PARALLEL_SIZE",
        VISIBLE_DEVICES,
    }
)
_KEPT_PREFIXES = ("VLLM_", "LWS_", "RAY_", "NIM_", "LLAMA_ARG_")
_VARIABLE = re.compile(r"\$[({]?(\w+)")
_SECRET_NAME = re.compile(r"KEY|TOKEN(?!IZ)|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_SECRET = r"(?:[\w-]{0,40}[-_])?(?:api[-_]?keys?|apikeys?|token|secret|password|passwd|credentials?)"
_SECRET_FLAG = re.compile(rf"--?{_SECRET}(=.*)?", re.IGNORECASE | re.DOTALL)
# The same inside of a script, where one word holds a whole command line.
_VALUE = r"""(?:"[^"]*"|'[^']*'|[^\s"']+)"""
_IN_SCRIPT = re.compile(
    rf"--?{_SECRET}(?:=|\s+){_VALUE}"
    rf"|\b(?-i:[A-Z0-9_]{{0,60}}(?:KEY|TOKEN(?!IZ)|SECRET|PASSWORD)[A-Z0-9_]{{0,60}})={_VALUE}"
    rf'|"\w{{0,60}}(?:key|token|secret|password)"\s*:\s*"[^"]*"'
    r"|\b(?:Bearer|Basic)\s+[\w.~+/=-]+|(?<=://)[^\s/@]+@|\b(?:hf_|sk-|nvapi-)[\w-]{16,}",
    re.IGNORECASE,
)


def command_line(container: Mapping[str, Any]) -> tuple[str, ...]:
    """Command and arguments. A flag such as `--api-key` is left out with all that follows it."""
    words: list[str] = []
    dropping = False
    for key in ("command", "args"):
        part = container.get(key)
        for raw in part[:_MOST_WORDS] if isinstance(part, list) else ():
            word = text(raw, _LONGEST_WORD)
            flag = _SECRET_FLAG.fullmatch(word)
            if flag:
                dropping = flag.group(1) is None
            elif word.startswith("-") or not dropping:
                dropping = False
                words.append(_harmless(word))
    return tuple(words)


def environment(container: Mapping[str, Any], words: tuple[str, ...]) -> dict[str, str]:
    """What the environment says of the model that is served: variables that engines know and those that
    the command line names, as far as they are written out in the pod."""
    named = {name for word in words if "$" in word for name in _VARIABLE.findall(word)}
    found = {}
    for each in mappings(container.get("env")):
        name = each.get("name")
        if (
            isinstance(name, str)
            and (name in _KEPT or name in named or name.startswith(_KEPT_PREFIXES))
            and not _SECRET_NAME.search(name)
            and each.get("value") is not None
        ):
            found[text(name)] = _harmless(text(each["value"]))
    return found


@lru_cache(maxsize=4096)
def _harmless(word: str) -> str:
    return _IN_SCRIPT.sub("", word)


def sees_every_gpu(container: Mapping[str, Any]) -> bool:
    """Whether NVIDIA's container runtime shows it all GPUs of its node, asked for or not."""
    return any(
        each.get("name") == VISIBLE_DEVICES and each.get("value") == "all"
        for each in mappings(container.get("env"))
    )
