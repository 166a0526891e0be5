"""The name that a model's path or address says, if it says one."""

from __future__ import annotations

import re

# Folders that are called so whatever model lies in them.
_SAY_NOTHING = frozenset(
    {
        *("app", "data", "home", "main", "mnt", "opt", "root", "srv", "tmp", "usr", "var", "workspace"),
        *("artifacts", "blobs", "cache", "current", "input", "latest", "local", "out", "output", "pvc"),
        *("repo", "repository", "share", "shared", "snapshot", "snapshots", "storage", "volume"),
        *("checkpoint", "checkpoints", "engine", "engines", "gguf", "hf", "hub", "huggingface", "llm"),
        *("model", "model-cache", "model_cache", "models", "weights"),
    }
)
_NUMBER_OR_HASH = re.compile(r"v?\d+|[0-9a-f]{12,}")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_HUB_CACHE = re.compile(r"models--(.+?)--(.+)")


def is_path(text: str) -> bool:
    """Whether a model is told by where it lies, not by its name."""
    return text.startswith(("/", "./", "../", "~")) or bool(_SCHEME.match(text)) or text.endswith(".gguf")


def name_in(text: str) -> str:
    """The name of a model: as it stands, or the last part of a path that says something, else empty.

    `hf://` leads to a name of the Hugging Face hub, and its cache holds folders `models--org--name`.
    """
    if not is_path(text):
        return text.rstrip("/")
    scheme = _SCHEME.match(text)
    rest = text[scheme.end() :] if scheme else text
    if scheme and scheme[1].lower() == "hf":
        return rest.strip("/")
    parts = [part for part in rest.split("/") if part not in ("", ".", "..", "~")]
    # Of an address the first part is the bucket, the volume or the host.
    for part in reversed(parts[1:] if scheme else parts):
        cached = _HUB_CACHE.fullmatch(part)
        if cached:
            return f"{cached[1]}/{cached[2]}"
        plain = part.removesuffix(".gguf")
        if plain.lower() not in _SAY_NOTHING and not _NUMBER_OR_HASH.fullmatch(plain.lower()):
            return plain
    return ""
