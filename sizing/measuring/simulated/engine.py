"""The engine of a simulated replica: steps of a known length on an absolute schedule."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

SLOW_START_FACTOR = 3.0
MAX_LATE_S = 0.1  # beyond it the schedule begins anew: the machine cannot keep it


@dataclass(frozen=True, slots=True)
class Costs:
    """What a step costs in milliseconds, and what it can hold.

    t0: each step. a: each sequence in it. p: each prompt token prefilled in it.
    """

    t0: float = 20.0
    a: float = 1.0
    p: float = 0.05
    max_seqs: int = 256
    prefill_budget: int = 8192


class Sequence:
    """One request inside the engine. Times are seconds of the event loop's clock.

    `first_due` and `last_due` are scheduled, `first_at` and `last_at` are when the tokens were really given.
    """

    __slots__ = (
        "arrived",
        "cached_tokens",
        "first_at",
        "first_due",
        "given",
        "last_at",
        "last_due",
        "on_token",
        "output_tokens",
        "prompt_tokens",
        "started",
        "to_prefill",
    )

    def __init__(
        self,
        prompt_tokens: int,
        output_tokens: int,
        arrived: float,
        on_token: Callable[[Sequence], None],
        cached_tokens: int = 0,
    ) -> None:
        self.prompt_tokens = prompt_tokens
        self.output_tokens = output_tokens
        self.arrived = arrived
        self.on_token = on_token
        self.cached_tokens = cached_tokens
        self.to_prefill = max(prompt_tokens - cached_tokens, 1)
        self.given = 0
        self.started = self.first_due = self.first_at = self.last_due = self.last_at = 0.0

    @property
    def finished(self) -> bool:
        return self.given >= self.output_tokens


@dataclass(slots=True)
class StepCounts:
    """Sums over steps since the last reset."""

    steps: int = 0
    busy_s: float = 0.0
    sequences: int = 0
    max_batch: int = 0
    max_waiting: int = 0
    max_prefill_tokens: int = 0
    prefill_tokens: int = 0
    late_s: float = 0.0
    max_late_s: float = 0.0
    schedule_restarts: int = 0


class Engine:
    """Takes sequences and calls `on_token` of each at the end of each step that gave it one."""

    def __init__(self, costs: Costs, slow_start_s: float = 0.0) -> None:
        self.costs = costs
        self.running: list[Sequence] = []
        self.waiting: deque[Sequence] = deque()
        self.counts = StepCounts()
        self._loop = asyncio.get_running_loop()
        self._slow_until = self._loop.time() + slow_start_s
        self._idle = True
        self._due = 0.0

    def submit(self, sequence: Sequence) -> None:
        """Put it at the end of the queue; an idle engine begins a step at once."""
        self.waiting.append(sequence)
        if self._idle:
            self._begin(max(sequence.arrived, self._due))

    def drop(self, sequence: Sequence) -> None:
        """Forget it, as its client went away; the step under way keeps its length."""
        if sequence in self.running:
            self.running.remove(sequence)
        elif sequence in self.waiting:
            self.waiting.remove(sequence)

    def _begin(self, start: float) -> None:
        costs, counts = self.costs, self.counts
        budget = costs.prefill_budget
        for sequence in self.running:
            budget -= _prefill(sequence, budget)
        # A step holds only what was there when it was due to begin, even where it begins late.
        while (
            budget
            and len(self.running) < costs.max_seqs
            and self.waiting
            and self.waiting[0].arrived <= start
        ):
            sequence = self.waiting.popleft()
            sequence.started = start
            budget -= _prefill(sequence, budget)
            self.running.append(sequence)
        batch, prefill = len(self.running), costs.prefill_budget - budget
        length = (costs.t0 + costs.a * batch + costs.p * prefill) / 1000
        if start < self._slow_until:
            length *= SLOW_START_FACTOR
        self._idle = False
        self._due = start + length
        self._loop.call_at(self._due, self._end)
        counts.steps += 1
        counts.busy_s += length
        counts.sequences += batch
        counts.prefill_tokens += prefill
        counts.max_batch = max(counts.max_batch, batch)
        counts.max_waiting = max(counts.max_waiting, len(self.waiting))
        counts.max_prefill_tokens = max(counts.max_prefill_tokens, prefill)

    def _end(self) -> None:
        due, clock = self._due, self._loop.time
        late = max(clock() - due, 0.0)
        self.counts.late_s += late
        self.counts.max_late_s = max(self.counts.max_late_s, late)
        if late > MAX_LATE_S:
            due += late
            self.counts.schedule_restarts += 1
        for sequence in tuple(self.running):
            if sequence.to_prefill:
                continue
            sequence.given += 1
            if sequence.given == 1:
                sequence.first_due, sequence.first_at = due, clock()
            if sequence.finished:
                sequence.last_due, sequence.last_at = due, clock()
            sequence.on_token(sequence)
        self.running = [sequence for sequence in self.running if not sequence.finished]
        if self.running:
            self._begin(due)
        elif self.waiting:
            self._begin(max(due, self.waiting[0].arrived))
        else:
            self._idle, self._due = True, due


def _prefill(sequence: Sequence, budget: int) -> int:
    """Prefill what the budget allows of the sequence's prompt; how much that was."""
    tokens = min(sequence.to_prefill, budget)
    sequence.to_prefill -= tokens
    return tokens
