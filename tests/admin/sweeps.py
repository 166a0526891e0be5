"""Levels, and measurements and runs that rest on them, with round numbers."""

from __future__ import annotations

from typing import Any

from sizing.domain.levels import CONCURRENCY, Judged, Level, Slo, Spread, judge
from sizing.models import BenchLevel, BenchProfile, Measurement, Refresh, Variant
from tests import builders

SLO = Slo(ttft_ms=500, itl_ms=50)


def level(load: float | None, tok_per_sec: float, tpot_ms: float, **fields: Any) -> Level:
    """A level whose TPOT p95 is given; TTFT p95 is 200 ms."""
    met = 96 if tpot_ms <= 50 else 48
    known: dict[str, Any] = {
        "arrival": CONCURRENCY,
        "load": load,
        "tok_per_sec": tok_per_sec,
        "sent": 96,
        "completed": 96,
        "failed": 0,
        "conform": met,
        "requests_per_sec": tok_per_sec / 32,
        "output_tokens": 32.0,
        "ttft": Spread(110.0, {50.0: 100.0, 95.0: 200.0, 99.0: 250.0}),
        "tpot": Spread(tpot_ms * 0.8, {50.0: tpot_ms * 0.75, 95.0: tpot_ms, 99.0: tpot_ms * 1.2}),
        "e2e": Spread(1800.0, {50.0: 1750.0, 95.0: 2000.0, 99.0: 2100.0}),
        "streamed": True,
    }
    return Level(**(known | fields))


def sweep() -> list[Judged]:
    """100 tok/s at 2 streams and 200 at 4 pass, 240 at 8 fails."""
    levels = (
        level(2, 100, 20),
        level(4, 200, 40),
        level(8, 240, 150, failures={"429": 1}, warnings=("percentiles are odd",)),
    )
    return [judge(one, SLO) for one in levels]


def profile(name: str = "chat", **fields: Any) -> BenchProfile:
    """A profile with the limits of `SLO`."""
    return builders.profile(name, itl_ms=50, arrival="concurrency", **fields)


def keep(owner: Measurement | Refresh, levels: list[Judged]) -> None:
    """Store levels under a measurement or a run."""
    whose = {"measurement": owner} if isinstance(owner, Measurement) else {"refresh": owner}
    BenchLevel.objects.bulk_create(
        BenchLevel(position=i, verdict=one.verdict, why=one.why, observed=one.level.as_dict(), **whose)
        for i, one in enumerate(levels, start=1)
    )


def measured(variant: Variant, on: BenchProfile, rate: str = "200", **fields: Any) -> Measurement:
    """A measurement as the desk takes them, with its levels."""
    known: dict[str, Any] = {
        "source": "builtin",
        "bound": "edge",
        "bracket": "200 tok/s; the next level tried, 240, failed",
        "engine": "vLLM 0.11.2",
        "generator": "builtin 0.1.0",
        "workload": {"input_tokens": 1024, "output_tokens": 256, "arrival": CONCURRENCY, "seed": 17},
        "replica_name": "llama-0",
        "gpu_type": builders.H100,
        "variant_shape": "4 GPUs, the whole GPU",
    }
    row = builders.measurement(variant, on, rate, **(known | fields))
    keep(row, sweep())
    return row


def refresh(variant: Variant, on: BenchProfile, state: str = "queued", **fields: Any) -> Refresh:
    """A run."""
    return Refresh.objects.create(
        variant=variant, profile=on, state=state, **({"trigger": Refresh.Trigger.ADMIN} | fields)
    )
