"""One streamed answer: each token is written to the connection as the engine gives it."""

from __future__ import annotations

import asyncio

from sizing.measuring.simulated.answers import BROKEN, DONE, Answer, chunk, error_event
from sizing.measuring.simulated.engine import Sequence

MOST_UNREAD_BYTES = 4 * 1024 * 1024  # a client that does not read loses its connection


class Stream:
    """Writes an answer's tokens straight to *transport*, which has the response's head already.

    `end` becomes the outcome: `done`, `cut` or `failed`. trouble: a fault that comes after half the tokens.
    """

    def __init__(self, answer: Answer, transport: asyncio.Transport, chunk_tokens: int, trouble: str) -> None:
        self.end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._answer = answer
        self._transport = transport
        self._chunk_tokens = chunk_tokens
        self._trouble = trouble
        self._trouble_at = max(answer.ask.output_tokens // 2, 1) if trouble else 0
        self._last_reasoning = answer.ask.output_tokens // 2 if answer.reasons(1) else 0
        self._unwritten = 0
        self._ready = {False: chunk(answer.tokens(1, False)), True: chunk(answer.tokens(1, True))}
        self._ending = answer.ending(answer.ask.output_tokens)

    def token(self, sequence: Sequence) -> None:
        """The engine gave the next token."""
        if self.end.done():
            return
        given = sequence.given
        self._unwritten += 1
        data = b""
        if self._unwritten == self._chunk_tokens or given in (1, self._last_reasoning) or sequence.finished:
            reasoning = given <= self._last_reasoning
            one = self._unwritten == 1
            data = self._ready[reasoning] if one else chunk(self._answer.tokens(self._unwritten, reasoning))
            self._unwritten = 0
        if given == self._trouble_at:
            self._fail(data)
        elif sequence.finished:
            self._transport.write(data + chunk(self._ending))
            self.end.set_result("done")
        elif data:
            self._transport.write(data)
            if self._transport.get_write_buffer_size() > MOST_UNREAD_BYTES:
                self._transport.abort()
                self.end.set_result("cut")

    def _fail(self, data: bytes) -> None:
        if self._trouble == "malformed":
            self._transport.write(data + chunk(BROKEN))
        elif self._trouble == "in_stream_error":
            self._transport.write(data + chunk(error_event() + DONE))
            self.end.set_result("failed")
        else:
            self._transport.write(data)
            self._transport.close()
            self.end.set_result("cut")
