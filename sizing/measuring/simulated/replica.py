"""The HTTP side of a simulated replica."""

from __future__ import annotations

import asyncio
import hmac
import os
import time
from dataclasses import dataclass, field

from aiohttp import HttpVersion11, web
from aiohttp.typedefs import Handler

from sizing.measuring.simulated.answers import Answer
from sizing.measuring.simulated.asking import Refusal, read_ask
from sizing.measuring.simulated.engine import Costs, Engine, Sequence
from sizing.measuring.simulated.faults import Faults, Share
from sizing.measuring.simulated.ledger import Ledger
from sizing.measuring.simulated.metrics import METRICS_TYPE, Metrics
from sizing.measuring.simulated.stream import Stream

VERSION = "1.0-simulated"
MOST_BODY_BYTES = 16 * 1024 * 1024
OWN_PATHS = ("/truth", "/health")  # they tell of the replica whatever its faults are
DIED_EXIT = 70
FOREIGN_INPUT, FOREIGN_OUTPUT = 64, 32
ENDLESS_TOKENS = 10**12
PAGE = "<!doctype html><title>Sign in</title><p>This page is not an API.</p>\n"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a replica serves, at which cost, and what goes wrong."""

    model: str = "simulated"
    costs: Costs = field(default_factory=Costs)
    faults: Faults = field(default_factory=Faults)
    key: str = field(default="", repr=False)


class Replica:
    """One replica; made inside a running event loop."""

    def __init__(self, settings: Settings) -> None:
        faults = settings.faults
        self.settings = settings
        self.faults = faults
        self.engine = Engine(settings.costs, faults.slow_start)
        self.ledger = Ledger(self.engine, time.monotonic())
        self._started_at = time.time()
        self._metrics = Metrics(settings.model, self.engine, self.ledger, self._started_at)
        self._clock = asyncio.get_running_loop().time
        self._requests = 0
        self._errors, self._empty = Share(faults.errors), Share(faults.empty)
        self._no_usage, self._no_stream = Share(faults.no_usage), Share(faults.no_stream)
        self._troubles = {
            "in_stream_error": Share(faults.in_stream_error),
            "abort": Share(faults.abort),
            "malformed": Share(faults.malformed),
        }

    def app(self) -> web.Application:
        """The web application."""
        app = web.Application(middlewares=[self._middleware], client_max_size=MOST_BODY_BYTES)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._answer)
        app.router.add_post("/v1/completions", self._answer)
        app.router.add_get("/health", self._health)
        app.router.add_get("/version", self._version)
        app.router.add_get("/metrics", self._numbers)
        app.router.add_get("/truth", self._truth)
        app.router.add_delete("/truth", self._forget)
        return app

    async def foreign_traffic(self) -> None:
        """Make the load that nobody asked for, evenly, for ever."""
        due = self._clock()
        while True:
            due += 1 / self.faults.foreign_traffic
            await asyncio.sleep(due - self._clock())
            self._submit(Sequence(FOREIGN_INPUT, FOREIGN_OUTPUT, self._clock(), self._foreign_token))

    def _foreign_token(self, sequence: Sequence) -> None:
        self.ledger.token(sequence)
        self.ledger.totals.foreign_generation_tokens += 1
        self.ledger.totals.foreign_done += sequence.finished

    def _submit(self, sequence: Sequence) -> None:
        self.ledger.totals.cache_queries += sequence.prompt_tokens
        self.ledger.totals.cache_hits += sequence.cached_tokens
        self.engine.submit(sequence)

    @web.middleware
    async def _middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path not in OWN_PATHS:
            if self.faults.redirect:
                raise web.HTTPFound(self.faults.redirect)
            if self.faults.html:
                return web.Response(text=PAGE, content_type="text/html")
        try:
            if self.settings.key and request.path.startswith("/v1/"):
                self._check_key(request)
            return await handler(request)
        except Refusal as refusal:
            return refusal.response()
        except web.HTTPRequestEntityTooLarge:
            return Refusal(413, f"the body has more than {MOST_BODY_BYTES} bytes").response()
        except web.HTTPClientError as error:  # no such path or method
            return Refusal(error.status, f"{request.method} {request.path}: {error.reason}").response()

    def _check_key(self, request: web.Request) -> None:
        expected = f"Bearer {self.settings.key}".encode()
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, expected):
            raise Refusal(401, "the API key is missing or wrong", "authentication_error")

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        faults, ledger = self.faults, self.ledger
        self._requests += 1
        ledger.totals.requests += 1
        if faults.die_after and self._requests >= faults.die_after:
            os._exit(DIED_EXIT)
        if faults.hang and self._requests >= faults.hang:
            await asyncio.get_running_loop().create_future()
        if faults.busy:
            response = Refusal(429, "the simulated engine is busy", "rate_limit_error").response()
            response.headers["Retry-After"] = "1"
            return response
        chat = request.path == "/v1/chat/completions"
        body = await request.read()
        arrived = self._clock()
        ask = read_ask(body, chat, self.settings.model)
        name = f"{'chatcmpl' if chat else 'cmpl'}-{self._requests}"
        if self._errors.hit():
            ledger.end(name, "failed")
            raise Refusal(500, "the simulated engine failed", "internal_server_error")
        answer = Answer(ask, name, self.settings.model, not self._no_usage.hit(), faults.reasoning)
        streamed = ask.stream and not self._no_stream.hit()
        if self._empty.hit():
            ledger.end(name, "empty")
            return await self._no_tokens(request, answer, streamed)
        cached = int(faults.cached_prompts * ask.prompt_tokens)
        sequence = Sequence(ask.prompt_tokens, ask.output_tokens, arrived, ledger.token, cached)
        if streamed:
            return await self._stream(request, answer, sequence)
        return await self._whole(answer, sequence)

    async def _no_tokens(self, request: web.Request, answer: Answer, streamed: bool) -> web.StreamResponse:
        if not streamed:
            return web.json_response(answer.whole(0, "stop"))
        response = await _open(request)
        await response.write(answer.opening() + answer.ending(0, "stop"))
        await response.write_eof()
        return response

    async def _stream(self, request: web.Request, answer: Answer, sequence: Sequence) -> web.StreamResponse:
        trouble = next((name for name, share in self._troubles.items() if share.hit()), "")
        response = await _open(request)
        transport = request.transport
        if transport is None:  # the client went away at once
            return response
        stream = Stream(answer, transport, self.faults.chunk_tokens, trouble)

        def token(sequence: Sequence) -> None:
            self.ledger.token(sequence)
            stream.token(sequence)

        sequence.on_token = token
        if self.faults.endless:
            sequence.output_tokens = ENDLESS_TOKENS
        await response.write(answer.opening())
        outcome = "cut"
        self._submit(sequence)
        try:
            outcome = await stream.end
        finally:
            if outcome != "done":
                self.engine.drop(sequence)
            self.ledger.end(answer.name, outcome, sequence)
        if outcome != "cut":
            await response.write_eof()
        return response

    async def _whole(self, answer: Answer, sequence: Sequence) -> web.Response:
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def token(sequence: Sequence) -> None:
            self.ledger.token(sequence)
            if sequence.finished and not end.done():
                end.set_result(None)

        sequence.on_token = token
        outcome = "cut"
        self._submit(sequence)
        try:
            await end
            outcome = "done"
        finally:
            if outcome != "done":
                self.engine.drop(sequence)
            self.ledger.end(answer.name, outcome, sequence)
        return web.json_response(answer.whole(sequence.given))

    async def _models(self, request: web.Request) -> web.Response:
        model = {
            "id": self.settings.model,
            "object": "model",
            "created": int(self._started_at),
            "owned_by": "simulated",
        }
        return web.json_response({"object": "list", "data": [model]})

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response()

    async def _version(self, request: web.Request) -> web.Response:
        await asyncio.sleep(self.faults.slow_version)
        return web.json_response({"version": VERSION})

    async def _numbers(self, request: web.Request) -> web.Response:
        return web.Response(body=self._metrics.text(), headers={"Content-Type": METRICS_TYPE})

    async def _truth(self, request: web.Request) -> web.Response:
        return web.json_response(self.ledger.truth(self._clock()))

    async def _forget(self, request: web.Request) -> web.Response:
        self.ledger.reset(self._clock())
        return web.Response(status=204)


async def _open(request: web.Request) -> web.StreamResponse:
    """The head of a streamed answer."""
    if request.version < HttpVersion11:
        raise Refusal(400, "a stream needs HTTP/1.1")
    headers = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
    response = web.StreamResponse(headers=headers)
    response.enable_chunked_encoding()
    await response.prepare(request)
    return response
