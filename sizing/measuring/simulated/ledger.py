"""What really happened to each request, and the sums that `/metrics` shows."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import asdict, dataclass, replace
from typing import Any

from sizing.measuring.simulated.engine import Engine, Sequence, StepCounts

KEPT_REQUESTS = 10_000
TTFT_BUCKETS_S = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)


@dataclass(slots=True)
class Totals:
    """Sums since the start of the process.

    Requests are counted when they arrive, prompts when their first token is there. `cut`: an abort or a
    client that went away; `failed`: answered with an error, also within the stream. Only the sums of tokens
    and of the cache hold foreign traffic too.
    """

    requests: int = 0
    done: int = 0
    cut: int = 0
    failed: int = 0
    empty: int = 0
    prompt_tokens: int = 0
    generation_tokens: int = 0
    foreign_done: int = 0
    foreign_generation_tokens: int = 0
    cache_queries: int = 0
    cache_hits: int = 0


class Ledger:
    """Counts, and the last requests one by one."""

    def __init__(self, engine: Engine, now: float) -> None:
        self.totals = Totals()
        self.ttft_sum_s = 0.0
        self.ttft_counts = [0] * (len(TTFT_BUCKETS_S) + 1)
        self._engine = engine
        self._requests: deque[dict[str, Any]] = deque(maxlen=KEPT_REQUESTS)
        self.reset(now)

    def reset(self, now: float) -> None:
        """Forget requests and steps; the sums of `/metrics` go on."""
        self._since = now
        self._base = replace(self.totals)
        self._requests.clear()
        self._engine.counts = StepCounts()

    def token(self, sequence: Sequence) -> None:
        """A token was given."""
        self.totals.generation_tokens += 1
        if sequence.given == 1:
            self.totals.prompt_tokens += sequence.prompt_tokens
            ttft = sequence.first_at - sequence.arrived
            self.ttft_sum_s += ttft
            self.ttft_counts[bisect_left(TTFT_BUCKETS_S, ttft)] += 1

    def end(self, name: str, outcome: str, sequence: Sequence | None = None) -> None:
        """A request ended: `done`, `cut`, `failed` or `empty`."""
        setattr(self.totals, outcome, getattr(self.totals, outcome) + 1)
        self._requests.append({"id": name, "outcome": outcome} | (_truth(sequence) if sequence else {}))

    def truth(self, now: float) -> dict[str, Any]:
        """All of it since the last reset; times in ms, `arrived_s` on the machine's monotonic clock."""
        base, counts = asdict(self._base), self._engine.counts
        steps = counts.steps or 1
        return {
            "seconds": now - self._since,
            "totals": {name: value - base[name] for name, value in asdict(self.totals).items()},
            "running": len(self._engine.running),
            "waiting": len(self._engine.waiting),
            "steps": {
                "count": counts.steps,
                "busy_s": counts.busy_s,
                "mean_batch": counts.sequences / steps,
                "max_batch": counts.max_batch,
                "max_waiting": counts.max_waiting,
                "prefill_tokens": counts.prefill_tokens,
                "max_prefill_tokens": counts.max_prefill_tokens,
                "mean_late_ms": counts.late_s / steps * 1000,
                "max_late_ms": counts.max_late_s * 1000,
                "schedule_restarts": counts.schedule_restarts,
            },
            "requests": list(self._requests),
        }


def _truth(sequence: Sequence) -> dict[str, Any]:
    return {
        "arrived_s": sequence.arrived,
        "queued_ms": (sequence.started - sequence.arrived) * 1000 if sequence.started else None,
        "prompt_tokens": sequence.prompt_tokens,
        "output_tokens": sequence.given,
        **_times(sequence, sequence.first_due, sequence.last_due),
        "written": _times(sequence, sequence.first_at, sequence.last_at),
    }


def _times(sequence: Sequence, first: float, last: float) -> dict[str, float | None]:
    if not sequence.finished:  # cut: the last token is not known
        return {
            "ttft_ms": (first - sequence.arrived) * 1000 if first else None,
            "tpot_ms": None,
            "e2e_ms": None,
        }
    return {
        "ttft_ms": (first - sequence.arrived) * 1000,
        "tpot_ms": (last - first) / (sequence.given - 1) * 1000 if sequence.given > 1 else None,
        "e2e_ms": (last - sequence.arrived) * 1000,
    }
