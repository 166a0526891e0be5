"""API keys of replicas, by reference: a file in a folder or a variable of the environment, never a row.

The names tried, in this order: the endpoint's host and port (`gpu-a1_8000`), its host, the model's name,
`default`; every other character than letters and digits counts as `_`. A file `NAME` in ENDPOINT_KEYS_DIR
comes before a variable `ENDPOINT_KEY_NAME` (in capitals).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from sizing.measuring.seam import MeasuringError

LARGEST_KEY = 8192


def names(url: str, model: str) -> list[str]:
    """The names under which the key of an endpoint may be kept, the most special first."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return [_plain(name) for name in (f"{host}_{port}", host, model, "default")]


def key_for(url: str, model: str, folder: Path | None) -> str:
    """The key of an endpoint, or "" where none is kept. MeasuringError where it cannot be read."""
    for name in names(url, model):
        if folder is not None and (folder / name).is_file():
            return _read(folder / name)
        if value := os.environ.get(f"ENDPOINT_KEY_{name.upper()}", "").strip():
            return _checked(value, f"ENDPOINT_KEY_{name.upper()}")
    return ""


def _read(path: Path) -> str:
    try:
        with path.open(encoding="ascii") as file:
            key = file.read(LARGEST_KEY + 1).strip()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not plain text"
        raise MeasuringError(f"the endpoint's key {path.name} cannot be read: {reason}") from None
    return _checked(key, path.name)


def _checked(key: str, name: str) -> str:
    if not key.isascii() or not key.isprintable() or len(key) > LARGEST_KEY:
        raise MeasuringError(f"the endpoint's key {name} is not one line of plain text")
    return key


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", name)
