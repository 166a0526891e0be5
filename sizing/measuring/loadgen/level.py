"""One load level: warm up, open the window, decide, and let the measured requests land under the load.

Requests are measured when they were sent inside the window. The load goes on after it closes until they
have ended, so that the last of them do not fly in an emptying server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from typing import Any

from aiohttp import ClientSession

from sizing.domain.levels import CONCURRENCY, POISSON, Level
from sizing.measuring.loadgen.arrivals import due_times
from sizing.measuring.loadgen.prompts import Prompts
from sizing.measuring.loadgen.request import Flight, body_of, fly
from sizing.measuring.loadgen.stream import Answer
from sizing.measuring.loadgen.summary import Window, summarize, tokens_per_chunk
from sizing.measuring.loadgen.tally import LEAST_REQUESTS, Tally, tally
from sizing.measuring.seam import Endpoint, Limits, Load, MeasuringError, Progress, Workload

TICK_S, SAY_EVERY_S = 0.1, 0.5
LEAST_WINDOW_S, LEAST_WINDOW_E2E = 2.0, 1.5
MOST_WARMUP_SHARE = MOST_RESERVE_SHARE = 1 / 3
STALLED_S, STALLED_LIMITS = 10.0, 4.0
"""Nothing came at all for so long, and for so many of the limits: the server hangs."""

PAUSE_S, MOST_PAUSE_S = 0.1, 1.0
"""How long a stream rests after a failure; it doubles with each further one."""


class LevelRun:
    """The run of one level; call `run` once, inside the event loop that the session belongs to.

    window: what was measured, once it has run.
    """

    window: Window

    def __init__(
        self,
        session: ClientSession,
        endpoint: Endpoint,
        workload: Workload,
        load: Load,
        limits: Limits,
        say: Callable[[Progress], None],
    ) -> None:
        if load.arrival not in (POISSON, CONCURRENCY) or not 0 < load.value < inf:
            raise MeasuringError(f"a load of {load.value:g} ({load.arrival}) cannot be made")
        self._session, self._endpoint, self._workload = session, endpoint, workload
        self._load, self._limits, self._say = load, limits, say
        self._url = f"{endpoint.url.rstrip('/')}/chat/completions"
        self._prompts = Prompts(workload.seed, round(workload.input_tokens * workload.words_per_token))
        self._clock = asyncio.get_running_loop().time
        self._streams = max(round(load.value), 1) if load.arrival == CONCURRENCY else 0
        self._least = max(LEAST_REQUESTS, self._streams)
        self._flights: list[Flight] = []
        self._flying = self._received = self._settled = 0
        self._completed = self._failed = 0
        self._e2e_sum_s = self._longest_s = 0.0
        self._start = self._last_byte = self._clock()
        self._opened = self._closed = 0
        """The measured requests are `_flights[_opened:_closed]`."""
        self._open_at = self._close_at = 0.0
        self._lateness: list[float] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._over = False
        self._said_at = 0.0

    async def run(self) -> Level:
        """The level; MeasuringError where it cannot be run."""
        self._start = self._last_byte = self._clock()
        self._spawn(self._arrive() if self._load.arrival == POISSON else self._stream_all())
        try:
            await self._until(self._warm)
            self._opened, self._open_at = len(self._flights), self._clock()
            self._lateness.clear()
            while True:
                await self._until(lambda: self._enough() or self._must_close())
                last = self._over or self._must_close()
                self._closed, self._close_at = len(self._flights), self._clock()
                await self._until(self._landed)
                if last or self._over or self._decides(self._counts()):
                    break
                self._close_at = 0.0  # those sent since count as well
            end = self._clock()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        self.window = Window(
            start=self._start,
            open=self._open_at,
            close=self._close_at,
            end=end,
            measured=self._measured,
            flights=self._flights,
            lateness=self._lateness,
        )
        return summarize(self.window, self._workload, self._load, self._limits.slo)

    # The load

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or task.exception() is None:
            self._tasks.discard(task)  # else the next tick raises what it holds

    async def _arrive(self) -> None:
        for offset in due_times(self._load.value, self._workload.seed):
            due = self._start + offset
            if (wait := due - self._clock()) > 0:
                await asyncio.sleep(wait)
            if not self._may_send:
                return
            self._spawn(self._one(due))

    async def _stream_all(self) -> None:
        for number in range(self._streams):
            self._spawn(self._stream(self._start + self._limits.warmup_s * number / self._streams))

    async def _stream(self, begin: float) -> None:
        await asyncio.sleep(max(begin - self._clock(), 0))
        pause, fresh, due = PAUSE_S, True, begin
        while self._may_send:
            flight = await self._one(due)
            self._settled += fresh
            fresh = False
            if flight.failure:
                await asyncio.sleep(pause)
                pause = min(2 * pause, MOST_PAUSE_S)
            else:
                pause = PAUSE_S
            due = self._clock()

    @property
    def _may_send(self) -> bool:
        return len(self._flights) < self._limits.requests

    async def _one(self, due: float) -> Flight:
        body = body_of(self._endpoint, self._workload, self._prompts.text(len(self._flights)))
        most = self._workload.output_tokens
        flight = Flight(planned=due, sent=self._clock(), answer=Answer(most), most_tokens=most)
        self._flights.append(flight)
        self._flying += 1
        await fly(self._session, self._url, body, flight, self._limits.request_s, self._got)
        self._flying -= 1
        if flight.failure:
            self._failed += 1
            return flight
        flight.conform = flight.meets(self._limits.slo)
        took = flight.e2e_ms / 1000
        self._completed += 1
        self._e2e_sum_s += took
        self._longest_s = max(self._longest_s, took)
        return flight

    def _got(self, size: int) -> None:
        self._received += size
        self._last_byte = self._clock()

    # Its phases

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition or the end of the level, tell how far it is, and raise what broke it."""
        while not self._over and not condition():
            wake = self._clock() + TICK_S
            await asyncio.sleep(TICK_S)
            now = self._clock()
            self._lateness.append(max(now - wake, 0.0))
            for task in [task for task in self._tasks if task.done()]:
                task.result()
            if now - self._said_at >= SAY_EVERY_S:
                self._said_at = now
                self._say(self._progress(now))
            limits = self._limits
            self._over = (
                now - self._start >= limits.seconds
                or self._received >= limits.bytes
                or now - self._last_byte >= self._stall_s
                or (not self._may_send and not self._flying)
            )

    def _warm(self) -> bool:
        elapsed = self._clock() - self._start
        if elapsed >= self._limits.seconds * MOST_WARMUP_SHARE:
            return True
        if elapsed < self._limits.warmup_s:
            return False
        if self._load.arrival == CONCURRENCY:
            return self._settled >= self._streams
        return self._completed + self._failed > 0 and elapsed >= self._mean_e2e_s

    def _enough(self) -> bool:
        counts = self._counts()
        if not self._decides(counts):
            return False
        if not counts.completed:
            return True
        least_s = self._limits.least_s if counts.passes(self._limits.slo.percentile) else LEAST_WINDOW_S
        window = max(least_s, LEAST_WINDOW_E2E * self._mean_e2e_s)
        return self._clock() - self._open_at >= window

    def _must_close(self) -> bool:
        """Whether what is left of the caps is needed to let the measured requests end under load."""
        reserve = min(1.5 * self._longest_s, self._limits.seconds * MOST_RESERVE_SHARE)
        return (
            self._over
            or self._clock() - self._start + reserve >= self._limits.seconds
            or len(self._flights) + self._flying >= self._limits.requests
        )

    def _landed(self) -> bool:
        counts = self._counts()
        if not counts.flying and not counts.overdue:
            return True
        if not counts.surely_fails(self._limits.slo.percentile, self._limits.thorough, self._least):
            return False
        return self._clock() - self._close_at >= 1.5 * self._longest_s

    # What it knows

    @property
    def _measured(self) -> list[Flight]:
        return self._flights[self._opened : self._closed if self._close_at else None]

    def _counts(self) -> Tally:
        return tally(self._measured, self._limits.slo, self._clock())

    def _decides(self, counts: Tally) -> bool:
        return counts.decides(self._limits.slo.percentile, self._limits.thorough, self._least)

    @property
    def _mean_e2e_s(self) -> float:
        return self._e2e_sum_s / self._completed if self._completed else 0.0

    @property
    def _stall_s(self) -> float:
        slo = self._limits.slo
        limit_ms = slo.ttft_ms or slo.e2e_ms
        if limit_ms is None:
            return self._limits.request_s
        return max(STALLED_S, STALLED_LIMITS * limit_ms / 1000)

    def _progress(self, now: float) -> Progress:
        begin = self._open_at or self._start
        flights = self._flights[self._opened :]
        chunks = sum(len(flight.answer.times) for flight in flights)
        return Progress(
            seconds=now - self._start,
            sent=len(self._flights),
            completed=self._completed,
            failed=self._failed,
            tok_per_sec=chunks * tokens_per_chunk(flights) / max(now - begin, TICK_S),
        )
