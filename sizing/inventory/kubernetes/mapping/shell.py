"""Command lines as a container has them: words, or a script for a shell among them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

_SHELLS = frozenset({"sh", "bash", "ash", "dash", "zsh", "ksh"})
_BETWEEN = ";|&\n"
_COMMENT_LINE = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_VARIABLE = re.compile(r"\$(?:\((\w+)\)|\{(\w+)(?::?-([^{}]*))?\}|(\w+))")
LONGEST_SCRIPT = 100_000


def commands_of(words: Sequence[str]) -> Iterator[list[str]]:
    """The commands of a container: its words, or those of the script that a shell is given with `-c`."""
    script = _script(words)
    if script is None:
        if words:
            yield list(words)
        return
    command: list[str] = []
    for word in _split(script[:LONGEST_SCRIPT]):
        if word and not word.strip(_BETWEEN):
            if command:
                yield command
            command = []
        else:
            command.append(word)
    if command:
        yield command


def filled(value: str, env: Mapping[str, str]) -> str:
    """The value with its variables filled in, `$(NAME)` as Kubernetes and `$NAME`, `${NAME:-else}` as shells
    write them; empty where one is not known."""
    if "$" not in value:
        return value.strip()
    unknown = False

    def fill(found: re.Match[str]) -> str:
        nonlocal unknown
        name = found[1] or found[2] or found[4]
        known = env.get(name) or found[3]
        unknown = unknown or not known
        return known or ""

    text = _VARIABLE.sub(fill, value)
    return "" if unknown or "$" in text else text.strip()


def _script(words: Sequence[str]) -> str | None:
    if not words or words[0].rsplit("/", 1)[-1] not in _SHELLS:
        return None
    for at, word in enumerate(words[1:-1], start=1):
        if re.fullmatch(r"-[a-z]*c", word):
            return words[at + 1]
        if not word.startswith(("-", "+")) and not re.fullmatch(r"[-+][a-z]*o", words[at - 1]):
            return None
    return None


def _split(script: str) -> list[str]:
    """The words of a script, what stands between commands as words of its own."""
    script = _COMMENT_LINE.sub("", script.replace("\\\r\n", " ").replace("\\\n", " "))
    lexer = shlex.shlex(script, posix=True, punctuation_chars=_BETWEEN)
    lexer.commenters = ""
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        # A quote that nothing closes: the words are still there.
        return script.split()
