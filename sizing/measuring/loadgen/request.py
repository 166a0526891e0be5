"""One request: sent, read to its end, timed, and named by what went wrong with it."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from json import dumps, loads

from aiohttp import (
    ClientConnectionResetError,
    ClientConnectorError,
    ClientError,
    ClientOSError,
    ClientPayloadError,
    ClientResponse,
    ClientSession,
    ServerDisconnectedError,
)

from sizing.domain.levels import Slo
from sizing.measuring.loadgen.guard import Redirected, read_capped, without_key
from sizing.measuring.loadgen.stream import Answer
from sizing.measuring.seam import Endpoint, MeasuringError, Workload

CONNECT, TIMEOUT, REDIRECT = "connect", "timeout", "redirect"
CLOSED, NOT_HTTP = "connection closed", "not HTTP"
HTML, NOT_A_STREAM = "HTML", "not a stream"
CUT, EMPTY = "cut stream", "empty answer"

TAIL_S = 0.1
"""How long the end of the connection is waited for after `[DONE]`, so that it can be used again."""

MOST_SAID = 2048
"""Bytes of an error's body that are read."""


@dataclass(slots=True, eq=False)
class Flight:
    """One request and its answer; times in seconds of the event loop's clock.

    planned: when it was due. ended: when nothing more was to come, None while it flies. failure: what
    went wrong, "" where it completed or flies. said: the server's words for it.
    """

    planned: float
    sent: float
    answer: Answer
    most_tokens: int
    ended: float | None = None
    failure: str = ""
    said: str = ""
    bytes: int = 0
    conform: bool = field(default=False)

    @property
    def completed(self) -> bool:
        return self.ended is not None and not self.failure

    @property
    def tokens(self) -> int:
        """Output tokens by the server's usage, else as many as chunks carried one."""
        return self.answer.output_tokens or len(self.answer.times)

    @property
    def ttft_ms(self) -> float | None:
        return (self.answer.times[0] - self.sent) * 1000 if self.answer.times else None

    @property
    def e2e_ms(self) -> float:
        return (self.answer.ended_at - self.sent) * 1000

    @property
    def tpot_ms(self) -> float | None:
        """None where there is no second token."""
        if self.tokens < 2 or self.ttft_ms is None:
            return None
        return (self.e2e_ms - self.ttft_ms) / (self.tokens - 1)

    def least(self, now: float) -> tuple[float, float, float]:
        """The least that TTFT, TPOT and end to end can become of a request that still flies."""
        flown = (now - self.sent) * 1000
        if not self.answer.times:
            return flown, 0.0, flown
        since_first = (now - self.answer.times[0]) * 1000
        return flown - since_first, since_first / max(self.most_tokens - 1, 1), flown

    def meets(self, slo: Slo) -> bool:
        """Whether a completed request meets the SLO; a single token has no TPOT to miss it by."""
        tpot = 0.0 if self.tokens == 1 else self.tpot_ms
        return slo.met(self.ttft_ms, tpot, self.e2e_ms)


def body_of(endpoint: Endpoint, workload: Workload, prompt: str) -> bytes:
    """The body of a request; an extra of None takes a key out."""
    form = {
        "model": endpoint.model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": workload.output_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
        **workload.extras,
    }
    return dumps({key: value for key, value in form.items() if value is not None}).encode()


async def fly(
    session: ClientSession,
    url: str,
    body: bytes,
    flight: Flight,
    request_s: float,
    received: Callable[[int], None],
) -> None:
    """Send a request and read its answer into `flight`; `received` is told of bytes as they come.

    Whatever the server does ends up in `failure`. MeasuringError where no request can be right: an
    address outside the networks, or no socket left on this machine.
    """
    clock = asyncio.get_running_loop().time
    try:
        async with asyncio.timeout(request_s):
            async with session.post(
                url, data=body, headers={"Content-Type": "application/json"}, allow_redirects=False
            ) as response:
                await _read(response, flight, received, clock)
    except TimeoutError:
        flight.failure = TIMEOUT
    except Redirected as error:
        flight.failure, flight.said = REDIRECT, str(error)
    except ClientPayloadError:
        flight.failure = _cut(flight.answer)
    except (ServerDisconnectedError, ClientConnectionResetError):
        flight.failure = CLOSED
    except ClientOSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise MeasuringError("this machine has no more sockets for so many requests at once") from error
        flight.failure = CONNECT if isinstance(error, ClientConnectorError) else _lost(flight.answer)
        number = error.errno or 0
        flight.said = os.strerror(number) if number > 0 else error.strerror or type(error).__name__
    except ClientError as error:
        flight.failure, flight.said = NOT_HTTP, str(error).partition("\n")[0]
    flight.said = without_key(session, flight.said)
    flight.ended = clock()


async def _read(
    response: ClientResponse, flight: Flight, received: Callable[[int], None], clock: Callable[[], float]
) -> None:
    if response.status != 200:
        flight.failure = f"http {response.status}"
        flight.said = _said(await read_capped(response, MOST_SAID))
        return
    if response.content_type in ("text/html", "application/json"):
        flight.failure = HTML if response.content_type == "text/html" else NOT_A_STREAM
        response.close()
        return
    answer, read = flight.answer, response.content.readany
    while data := await read():
        answer.feed(data, clock())
        flight.bytes += len(data)
        received(len(data))
        if answer.fault:
            flight.failure, flight.said = answer.fault, answer.said
            response.close()
            return
        if answer.done:
            await _tail(response)
            break
    answer.end(clock())
    flight.failure, flight.said = answer.fault or _cut(answer), answer.said
    if not flight.failure and not answer.times:
        flight.failure = EMPTY


async def _tail(response: ClientResponse) -> None:
    """Wait for the connection's free end after the answer, unless the server does not come to it."""
    try:
        async with asyncio.timeout(TAIL_S):
            await response.content.readany()
    except TimeoutError:
        response.close()


def _said(body: bytes) -> str:
    """The message of an error in OpenAI's form, or the body as it is."""
    try:
        return str(loads(body)["error"]["message"])
    except (ValueError, TypeError, LookupError, RecursionError):
        return body.decode(errors="replace")


def _cut(answer: Answer) -> str:
    return "" if answer.complete else CUT


def _lost(answer: Answer) -> str:
    return _cut(answer) if answer.times else CLOSED
