"""Readers of single settings: each takes a name of ``setting_table.py`` and gives a checked value.

A value that cannot be used is a :class:`WrongSetting` with one line; what may hold a
password is never repeated.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from llmgw_admin.setting_table import SETTINGS

Item = TypeVar("Item")
YES = frozenset({"1", "true", "t", "yes", "y", "on"})
NO = frozenset({"0", "false", "f", "no", "n", "off"})
MOST_SECRET_BYTES = 64 * 1024


class WrongSetting(Exception):  # noqa: N818  it reads as what it says
    """A setting that cannot be used; its text is one line that names it."""


def text(name: str) -> str:
    """The value given, else the default; an empty one counts as not given, as compose and unit files have it.

    Raises LookupError for a name that ``setting_table.py`` does not list.
    """
    setting = SETTINGS[name]
    value = os.environ.get(name, "").strip()
    if setting.secret and (file := secret_file(name)):
        if value:
            raise WrongSetting(f"{name} and {name}_FILE are both given; give one")
        value = _content(f"{name}_FILE", file)
    return value or setting.default


def secret_file(name: str) -> Path | None:
    """The file that holds a secret setting, where one is named."""
    path = os.environ.get(f"{name}_FILE", "").strip()
    return Path(path).expanduser() if path else None


def _content(name: str, path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            content = file.read(MOST_SECRET_BYTES).strip()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not plain text"
        raise WrongSetting(f"{name}: {path} cannot be read: {reason}") from None
    if not content:
        raise WrongSetting(f"{name}: {path} is empty")
    return content


def flag(name: str) -> bool:
    value = text(name)
    if value.lower() not in YES | NO:
        raise WrongSetting(f"{name}={value!r} is not a yes or no (1 or 0)")
    return value.lower() in YES


def number(name: str, low: int, high: int) -> int:
    try:
        value = int(text(name))
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise WrongSetting(f"{name}={text(name)!r} is not a whole number from {low} to {high}")
    return value


def decimal(name: str, low: float, high: float) -> float:
    try:
        value = float(text(name))
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise WrongSetting(f"{name}={text(name)!r} is not a number from {low:g} to {high:g}")
    return value


def choice(name: str, choices: tuple[str, ...]) -> str:
    if (value := text(name)) not in choices:
        raise WrongSetting(f"{name}={value!r} is not one of {', '.join(choices)}")
    return value


def items(name: str, parse: Callable[[str], Item]) -> list[Item]:
    """What stands between commas; *parse* raises ValueError with what is wrong."""
    parsed = []
    for part in text(name).split(","):
        if part.strip():
            try:
                parsed.append(parse(part.strip()))
            except ValueError as error:
                raise WrongSetting(f"{name}: {error}") from None
    return parsed


def host(value: str) -> str:
    if any(sign in value for sign in "/ @") or (":" in value and not value.startswith("[")):
        raise ValueError(f"{value!r} is not a host name; leave out the scheme and the port")
    return value


def origin(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path or parts.query:
        raise ValueError(f"{value!r} is not an origin like https://desk.example.com")
    return value


def url(name: str, schemes: tuple[str, ...]) -> str:
    """The value may hold a password, so no message repeats it."""
    value = text(name)
    try:
        parts = urlsplit(value)
    except ValueError:
        raise WrongSetting(f"{name} is not a URL that begins with {_either(schemes)}") from None
    if parts.scheme not in schemes or "://" not in value:
        raise WrongSetting(f"{name} is not a URL that begins with {_either(schemes)}")
    try:
        wrong_port = parts.port == 0
    except ValueError:
        wrong_port = True
    if wrong_port:
        raise WrongSetting(f"{name}: the port is not a number from 1 to 65535")
    return value


def _either(schemes: tuple[str, ...]) -> str:
    return " or ".join(f"{scheme}://" for scheme in schemes)


def folder(name: str) -> Path | None:
    if not text(name):
        return None
    path = Path(text(name)).expanduser().absolute()
    if not path.is_dir():
        raise WrongSetting(f"{name}={text(name)!r} is not a folder")
    return path
