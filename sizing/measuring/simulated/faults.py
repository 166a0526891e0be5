"""What a simulated replica can do wrong, on request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

REASONING_KEYS = ("reasoning_content", "reasoning")
NEVER = Fraction(0)


class BadFaultError(ValueError):
    """A fault that does not exist, or not with this value; the message is one line."""


@dataclass(frozen=True, slots=True)
class Faults:
    """Every fault by its name; what each does stands in the table below.

    Of several that a request could meet it meets the first as listed. Those "in a stream" come after half
    of its tokens, and an answer in one piece does not know them.
    """

    die_after: int = 0
    hang: int = 0
    busy: bool = False
    errors: Fraction = NEVER
    empty: Fraction = NEVER
    in_stream_error: Fraction = NEVER
    abort: Fraction = NEVER
    malformed: Fraction = NEVER
    no_usage: Fraction = NEVER
    no_stream: Fraction = NEVER
    chunk_tokens: int = 1
    reasoning: str = ""
    endless: bool = False
    cached_prompts: Fraction = NEVER
    foreign_traffic: float = 0.0
    slow_start: float = 0.0
    slow_version: float = 0.0
    html: bool = False
    redirect: str = ""


class Share:
    """A share of requests, met exactly and always in the same order: of 0.2, each fifth one."""

    def __init__(self, share: Fraction) -> None:
        self._share = share
        self._seen = 0

    def hit(self) -> bool:
        """Whether the next request is one of them."""
        self._seen += 1
        return int(self._share * self._seen) > int(self._share * (self._seen - 1))


def _share(text: str) -> Fraction:
    share = Fraction(text)
    if not 0 < share <= 1:
        raise ValueError
    return share


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _amount(text: str) -> float:
    number = float(text)
    if not 0 < number < 1e6:
        raise ValueError
    return number


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")) or not text.isprintable() or " " in text:
        raise ValueError
    return text


def _reasoning_key(text: str) -> str:
    if text not in REASONING_KEYS:
        raise ValueError
    return text


def _nothing(text: str) -> bool:
    if text:
        raise ValueError
    return True


@dataclass(frozen=True, slots=True)
class _Kind:
    read: Callable[[str], Any]
    takes: str


_SHARE = _Kind(_share, "a share above 0, up to 1")
_COUNT = _Kind(_count, "a whole number from 1")
_SECONDS = _Kind(_amount, "seconds above 0")
_RATE = _Kind(_amount, "requests per second")
_URL = _Kind(_url, "an http URL")
_KEY = _Kind(_reasoning_key, " or ".join(REASONING_KEYS))
_FLAG = _Kind(_nothing, "no value")

# Name, kind, value where it is named alone (None: it must have one), meaning.
_TABLE: tuple[tuple[str, _Kind, str | None, str], ...] = (
    ("die_after", _COUNT, None, "the process ends at once at the Nth request"),
    ("hang", _COUNT, "1", "from the Nth request on, none is answered"),
    ("busy", _FLAG, "", "429 for every request"),
    ("errors", _SHARE, "1", "500 for this share of requests"),
    ("empty", _SHARE, "1", "an answer without a token"),
    ("in_stream_error", _SHARE, "1", "an error event in a stream, which ends it"),
    ("abort", _SHARE, "1", "the connection is closed in a stream"),
    ("malformed", _SHARE, "1", "an event of broken JSON in a stream, which goes on"),
    ("no_usage", _SHARE, "1", "the usage is not told"),
    ("no_stream", _SHARE, "1", "one piece where a stream was asked for"),
    ("chunk_tokens", _COUNT, None, "after the first token, N tokens in each chunk"),
    ("reasoning", _KEY, REASONING_KEYS[0], "the first half of a chat's tokens is reasoning, under this key"),
    ("endless", _FLAG, "", "streams never end, whatever max_tokens says"),
    ("cached_prompts", _SHARE, "0.5", "this share of each prompt is found in the prefix cache"),
    ("foreign_traffic", _RATE, None, "load of its own, 64 tokens in and 32 out a request"),
    ("slow_start", _SECONDS, None, "for so long after the start, steps take three times as long"),
    ("slow_version", _SECONDS, "30", "/version answers after so long"),
    ("html", _FLAG, "", "an HTML page for every path but /truth and /health"),
    ("redirect", _URL, None, "302 to it for every path but /truth and /health"),
)


def read_faults(words: Iterable[str]) -> Faults:
    """Faults from `NAME` or `NAME=VALUE`, each at most once; BadFaultError says what is wrong."""
    known = {name: (kind, alone) for name, kind, alone, _ in _TABLE}
    values: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if name not in known:
            raise BadFaultError(f"no fault {name!r}; there are {', '.join(sorted(known))}")
        if name in values:
            raise BadFaultError(f"fault {name} is given twice")
        kind, alone = known[name]
        if not equals:
            if alone is None:
                raise BadFaultError(f"fault {name} needs a value: {kind.takes}")
            text = alone
        try:
            values[name] = kind.read(text)
        except (ValueError, ZeroDivisionError):
            raise BadFaultError(f"fault {name} takes {kind.takes}, not {text!r}") from None
    return Faults(**values)


def faults_help() -> str:
    """One line for each fault."""
    lines = []
    for name, kind, alone, meaning in _TABLE:
        value = "" if kind is _FLAG else "=VALUE" if alone is None else f"[={alone}]"
        lines.append(f"{name + value:<32}{meaning}")
    return "\n".join(lines)
