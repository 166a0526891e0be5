"""The levels of two measurements in one drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sizing.admin.charts import Curve, compared_latency, compared_throughput, line_key, mark_key
from sizing.admin.measured import words
from sizing.admin.measured.level_table import decided_at, mark_of
from sizing.domain.levels import Judged, Level, Slo, strain
from sizing.domain.throughput import LoadGroup, Throughput, at_slo, groups
from sizing.models import Measurement
from sizing.templatetags.desk import num, rate


@dataclass(frozen=True)
class Side:
    """One of the two. name: `A`, the one compared with, or `B`."""

    name: str
    measurement: Measurement
    judged: Sequence[Judged] = field(default=())

    @cached_property
    def arrival(self) -> str | None:
        """How the load of all its levels arrived; None where they differ, or there are none."""
        arrivals = {j.level.arrival for j in self.judged}
        return next(iter(arrivals)) if len(arrivals) == 1 else None

    @cached_property
    def sweep(self) -> Throughput | None:
        return at_slo(self.judged) if self.arrival else None

    @cached_property
    def groups(self) -> list[LoadGroup]:
        """Its levels by load, without those that have none."""
        return groups(j for j in self.judged if j.level.load is not None)

    @cached_property
    def deciding(self) -> Level | None:
        """The level that gives the figure; of repeats the last that counts."""
        sweep = self.sweep
        if sweep is None or not sweep.tok_per_sec:
            return None
        at = (sweep.load, sweep.tok_per_sec)
        return next(g.counting[-1].level for g in groups(self.judged) if (g.load, g.tok_per_sec) == at)

    @property
    def counts(self) -> bool:
        return words.counts(self.measurement)

    @property
    def slo(self) -> Slo:
        return self.measurement.slo


def charts_of(a: Side, b: Side) -> dict[str, Any]:
    """Both curves in one drawing; or why they are not."""
    missing = [one.name for one in (a, b) if not one.groups]
    if missing:
        return {"no_chart": f"No curve: the levels of {' and '.join(missing)} are not kept."}
    if a.arrival is None or a.arrival != b.arrival:
        return {
            "no_chart": "Not in one chart: their loads arrived differently, so one axis does not hold both."
        }
    unit = words.load_unit(a.arrival)
    said = " ".join(f"{one.name}: {one.sweep.bracket}." for one in (a, b) if one.sweep)
    verdicts = {j.verdict for one in (a, b) for j in one.judged}
    charts: dict[str, Any] = {
        "throughput": compared_throughput(
            "compared-throughput",
            [_curve(one) for one in (a, b)],
            unit=unit,
            about=f"{said} The tables have every number.",
        ),
        "lines": [(line_key(kind), one.name) for kind, one in zip(("before", "after"), (a, b), strict=True)],
        "keys": [(mark_key(v), text) for v, text in words.MEANINGS.items() if v in verdicts],
    }
    strains = [_strain_curve(one) for one in (a, b)]
    if any(curve.marks for curve in strains):
        about = (
            "The limited latency that comes nearest to its limit, as a share of that limit, at each level."
        )
        charts["latency"] = compared_latency(
            "compared-latency", strains, unit=unit, about=f"{about} Above 100 % the SLO is not met."
        )
    return charts


def _curve(side: Side) -> Curve:
    placed = [j for j in side.judged if j.level.load is not None]
    return Curve(
        side.name,
        [
            mark_of(j, j.level.tok_per_sec or 0.0, f"{side.name}, {rate(j.level.tok_per_sec)} tok/s")
            for j in placed
        ],
        [(g.load, g.tok_per_sec) for g in side.groups],
        decided_at(side.sweep),
    )


def _strain_curve(side: Side) -> Curve:
    known = [
        (j, share)
        for j in side.judged
        if j.level.load is not None and (share := strain(j.level, side.slo)) is not None
    ]
    marks = [
        mark_of(j, share, f"{side.name}, {num(f'{share * 100:.0f}', '%')} of its limit") for j, share in known
    ]
    return Curve(side.name, marks, sorted((m.load, m.value) for m in marks))
