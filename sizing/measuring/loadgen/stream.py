"""One streamed answer: server-sent events read as they come, and what they tell.

A chunk carries a token when its delta holds content, reasoning, a refusal or a tool call. One that holds
only the role, or nothing, and comments that keep the connection alive, do not.
"""

from __future__ import annotations

from array import array
from json import loads
from typing import Any

MALFORMED, ERROR_IN_STREAM, TOO_LARGE = "malformed chunk", "error in the stream", "answer too large"

MOST_EVENT = 1024 * 1024
"""Bytes of one event."""

_CARRIERS = ("reasoning_content", "reasoning", "refusal", "tool_calls")
_BROKEN_FINISHES = ("error", "abort")


class Answer:
    """What a stream has told so far; times are those given to `feed`.

    times: when each chunk that carries a token came. finished_at: when the chunk came that says why the
    answer ended. done: `[DONE]` came. prompt_tokens, output_tokens, cached_tokens: the server's usage,
    None where it sent none. fault: what is wrong with the stream, "" while nothing is; said: the server's
    words for it.
    """

    __slots__ = (
        "_data",
        "_data_size",
        "_most_chunks",
        "_parts",
        "_size",
        "_skip_lf",
        "cached_tokens",
        "done",
        "fault",
        "finish",
        "finished_at",
        "output_tokens",
        "prompt_tokens",
        "said",
        "times",
    )

    def __init__(self, most_tokens: int) -> None:
        self.times = array("d")
        self.finished_at: float | None = None
        self.finish = ""
        self.done = False
        self.prompt_tokens: int | None = None
        self.output_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.fault = ""
        self.said = ""
        self._most_chunks = 2 * most_tokens + 16
        self._parts: list[bytes] = []
        self._size = 0
        self._skip_lf = False
        self._data: list[bytes] = []
        self._data_size = 0

    @property
    def complete(self) -> bool:
        """Whether the server has said that the answer ended."""
        return self.done or self.finished_at is not None

    @property
    def ended_at(self) -> float:
        """When the answer ended: its last token, or the later chunk that says why it ended."""
        last = self.times[-1] if self.times else 0.0
        return max(last, self.finished_at or 0.0)

    def feed(self, data: bytes, now: float) -> None:
        """Read what came at `now`, cut anywhere."""
        if self._skip_lf and data:
            data = data.removeprefix(b"\n")
            self._skip_lf = False
        if b"\r" in data:
            self._skip_lf = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, newline, rest = data.partition(b"\n")
        if not newline:
            self._parts.append(first)
            self._size += len(first)
            self._cap()
            return
        if self._parts:
            first = b"".join([*self._parts, first])
        lines = rest.split(b"\n")
        tail = lines.pop()
        self._line(first, now)
        for line in lines:
            self._line(line, now)
        self._parts = [tail] if tail else []
        self._size = len(tail)
        self._cap()

    def end(self, now: float) -> None:
        """The connection ended: an event that lacks only its closing empty line still counts."""
        if self.complete or self.fault:
            return
        self._line(b"".join(self._parts), now)
        self._line(b"", now)
        if self.fault == MALFORMED:  # half a chunk: the stream was cut, which its reader sees
            self.fault = ""

    def _cap(self) -> None:
        if self._size + self._data_size > MOST_EVENT:
            self.fault = self.fault or TOO_LARGE

    def _line(self, line: bytes, now: float) -> None:
        if line.startswith(b"data:"):
            self._data_size += len(line)
            self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
        elif not line and self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            self._data = []
            self._data_size = 0
            if data and not self.done and not self.fault:
                self._event(data, now)

    def _event(self, data: bytes, now: float) -> None:
        if data.strip() == b"[DONE]":
            self.done = True
            return
        try:
            self._chunk(loads(data.decode()), now)
        except (ValueError, TypeError, AttributeError, RecursionError):
            self.fault = MALFORMED
            self.said = data[:200].decode(errors="replace")

    def _chunk(self, chunk: dict[str, Any], now: float) -> None:
        """Take one chunk; AttributeError or TypeError where it is of another form."""
        if error := chunk.get("error") or (chunk.get("object") == "error" and chunk):
            self.fault = ERROR_IN_STREAM
            self.said = str(error.get("message", error) if isinstance(error, dict) else error)[:200]
            return
        carries = False
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            carries = carries or bool(delta.get("content")) or any(map(delta.get, _CARRIERS))
            if finish := choice.get("finish_reason"):
                self.finish = str(finish)
                self.finished_at = now
                if finish in _BROKEN_FINISHES:
                    self.fault = ERROR_IN_STREAM
                    self.said = f"finish_reason {finish}"
        if carries:
            self.times.append(now)
            if len(self.times) > self._most_chunks:
                self.fault = TOO_LARGE
        if usage := chunk.get("usage"):
            self._usage(usage)

    def _usage(self, usage: dict[str, Any]) -> None:
        self.prompt_tokens = _count(usage.get("prompt_tokens"), self.prompt_tokens)
        self.output_tokens = _count(usage.get("completion_tokens"), self.output_tokens)
        details = usage.get("prompt_tokens_details") or {}
        self.cached_tokens = _count(details.get("cached_tokens"), self.cached_tokens)


def _count(value: Any, before: int | None) -> int | None:
    """A count that can be one of tokens, else the one before."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10**8:
        return value
    return before
