"""The bytes of answers: streams of events made ready before the tokens come, and answers in one piece."""

from __future__ import annotations

import json
import time
from typing import Any

from sizing.measuring.simulated.asking import Ask, error_body

TOKEN = " token"
KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"
BROKEN = b'data: {"id": "broken", "choices": [{"index"\n\n'


def chunk(data: bytes) -> bytes:
    """*data* as a piece of a chunked HTTP body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


def error_event() -> bytes:
    return event(error_body("the simulated engine failed", "internal_server_error", 500))


class Answer:
    """The pieces of the answer to one request."""

    def __init__(self, ask: Ask, name: str, model: str, with_usage: bool, reasoning_key: str) -> None:
        kind = "chat.completion" if ask.chat else "text_completion"
        self.ask = ask
        self.name = name
        self._with_usage = with_usage
        self._reasoning_key = reasoning_key if ask.chat else ""
        self._head = {"id": name, "object": kind, "created": int(time.time()), "model": model}
        self._chunk_head = self._head | ({"object": f"{kind}.chunk"} if ask.chat else {})

    def reasons(self, token: int) -> bool:
        """Whether the token of this number, from 1, is reasoning."""
        return bool(self._reasoning_key) and token <= self.ask.output_tokens // 2

    def opening(self) -> bytes:
        """What a stream begins with before there is a token: a comment and, of a chat, the role alone."""
        if not self.ask.chat:
            return KEEP_ALIVE
        return KEEP_ALIVE + self._event(self._delta({"role": "assistant", "content": ""}, None))

    def tokens(self, count: int, reasoning: bool) -> bytes:
        """An event of so many tokens."""
        text = TOKEN * count
        if not self.ask.chat:
            return self._event({"index": 0, "text": text, "finish_reason": None})
        return self._event(self._delta({self._reasoning_key if reasoning else "content": text}, None))

    def ending(self, given: int, reason: str = "length") -> bytes:
        """The finish reason, the usage where it was asked for, and the mark of the end."""
        if self.ask.chat:
            end = self._event(self._delta({}, reason))
        else:
            end = self._event({"index": 0, "text": "", "finish_reason": reason})
        if self.ask.include_usage and self._with_usage:
            end += event(self._chunk_head | {"choices": [], "usage": self._usage(given)})
        return end + DONE

    def whole(self, given: int, reason: str = "length") -> dict[str, Any]:
        """The answer in one piece."""
        reasoned = sum(self.reasons(token) for token in range(1, given + 1))
        text = TOKEN * (given - reasoned)
        choice: dict[str, Any] = {"index": 0, "finish_reason": reason}
        if self.ask.chat:
            choice["message"] = {"role": "assistant", "content": text}
            if reasoned:
                choice["message"][self._reasoning_key] = TOKEN * reasoned
        else:
            choice["text"] = text
        usage = {"usage": self._usage(given)} if self._with_usage else {}
        return self._head | {"choices": [choice]} | usage

    def _event(self, choice: dict[str, Any]) -> bytes:
        return event(self._chunk_head | {"choices": [choice]})

    def _delta(self, delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
        return {"index": 0, "delta": delta, "finish_reason": reason}

    def _usage(self, given: int) -> dict[str, int]:
        prompt = self.ask.prompt_tokens
        return {"prompt_tokens": prompt, "completion_tokens": given, "total_tokens": prompt + given}
