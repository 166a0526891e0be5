"""The levels of a sweep as a page shows them: two charts, their legend, and a table of everything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from django.utils.safestring import SafeString

from sizing.admin.charts import (
    Mark,
    Series,
    latency_chart,
    line_key,
    mark_key,
    throughput_chart,
)
from sizing.admin.measured import words
from sizing.domain.levels import Judged, Slo, Spread, Verdict, limited, load_words
from sizing.domain.throughput import EDGE, LoadGroup, Throughput, at_slo, groups
from sizing.models import BenchLevel
from sizing.templatetags.desk import num, rate

SHOWN = (50.0, 95.0, 99.0)
LINES = ("first", "second", "third")


@dataclass(frozen=True, slots=True)
class Listed:
    """A level as it is listed. position: the how-maniest it was, from 1. source: the file that told it."""

    position: int
    judged: Judged
    source: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table; numbers are texts."""

    position: int
    source: str
    load: str
    verdict: str
    key: SafeString
    why: str
    decides: bool
    tok_per_sec: str
    sent: str
    achieved: str
    failures: str
    latencies: tuple[str, ...]
    warnings: tuple[str, ...]


def levels_part(rows: Sequence[BenchLevel], slo: Slo) -> dict[str, Any]:
    """What a page needs to show the levels of a measurement or a run; empty where there are none."""
    return listed_part([Listed(row.position, row.judged) for row in rows], slo)


def listed_part(listed: Sequence[Listed], slo: Slo) -> dict[str, Any]:
    """What a page needs to show levels, wherever they are kept; empty where there are none."""
    if not listed:
        return {}
    judged = [one.judged for one in listed]
    arrivals = {j.level.arrival for j in judged}
    sweep = at_slo(judged) if len(arrivals) == 1 else None
    unit = words.load_unit(next(iter(arrivals))) if len(arrivals) == 1 else "load"
    placed = [j for j in judged if j.level.load is not None]
    series = _series(placed, slo)
    return {
        "rows": _rows(listed, sweep),
        "from_files": any(one.source for one in listed),
        "percentiles": ("mean", *(f"p{at:g}" for at in SHOWN)),
        "keys": [
            (mark_key(v), text) for v, text in words.MEANINGS.items() if any(j.verdict is v for j in judged)
        ],
        "lines": [
            (line_key(kind), f"{one.name} {_percentiles(shown)}")
            for kind, (one, shown) in zip(LINES, series, strict=False)
            if one.marks
        ],
        "split": _split(judged) if sweep is not None else [],
        "bracketed": sweep is not None and _bracket(placed, sweep) is not None,
        "unplaced": len(judged) - len(placed),
        **(_charts(placed, series, slo, unit, sweep) if placed else {}),
    }


def _split(judged: Sequence[Judged]) -> list[str]:
    """What counts of each load that passed once and did not another time, a sentence each."""
    told = []
    for group in groups(judged):
        passed, runs = sum(1 for one in group.repeats if one.verdict is Verdict.PASS), len(group.repeats)
        if 0 < passed < runs:
            at = load_words(group.repeats[0].level.arrival, group.repeats[0].level.load)
            counts = {Verdict.PASS: "passed", Verdict.FAIL: "failed"}.get(group.verdict, group.verdict.value)
            told.append(f"{at} passed {num(passed)} of {num(runs)} times and counts as {counts}.")
    return told


def _rows(listed: Sequence[Listed], sweep: Throughput | None) -> list[Row]:
    def by_load(one: Listed) -> tuple[bool, float, int]:
        load = one.judged.level.load
        return load is None, load or 0.0, one.position

    return [_row(one, sweep) for one in sorted(listed, key=by_load)]


def _row(one: Listed, sweep: Throughput | None) -> Row:
    judged, level = one.judged, one.judged.level
    kinds = ", ".join(f"{num(count)} × {kind}" for kind, count in level.failures.items())
    decided = sweep.load if sweep is not None and sweep.tok_per_sec else None
    return Row(
        position=one.position,
        source=one.source,
        load=load_words(level.arrival, level.load),
        verdict=judged.verdict.value,
        key=mark_key(judged.verdict),
        why=judged.why,
        decides=decided is not None and decided == level.load,
        tok_per_sec=rate(level.tok_per_sec),
        sent=num(level.sent),
        achieved=num(None if level.requests_per_sec is None else f"{level.requests_per_sec:.4g}"),
        failures=f"{num(level.failed)}{f' ({kinds})' if kinds else ''}",
        latencies=tuple(text for spread in (level.ttft, level.tpot, level.e2e) for text in _spread(spread)),
        warnings=level.warnings,
    )


def _spread(spread: Spread) -> Iterable[str]:
    yield words.ms(spread.mean)
    for at in SHOWN:
        yield words.ms(spread.at.get(at))


def told_at(known: Iterable[float], percentile: float) -> float | None:
    """Of known percentiles the one that tells of this one: itself, the next above, else the next below."""
    return min(known, key=lambda at: (at < percentile, abs(at - percentile)), default=None)


def _percentiles(shown: Iterable[float]) -> str:
    return " and ".join(f"p{at:g}" for at in sorted(shown))


def _charts(
    placed: Sequence[Judged],
    series: Sequence[tuple[Series, set[float]]],
    slo: Slo,
    unit: str,
    sweep: Throughput | None,
) -> dict[str, Any]:
    decided = decided_at(sweep)
    bracket = _bracket(placed, sweep)
    loads = [j.level.load or 0.0 for j in placed]
    many = f"{num(len(placed))} level{'s' * (len(placed) != 1)}"
    said = sweep.bracket if sweep is not None else "open and closed loop are mixed, so there is no figure"
    curve = [(g.load, g.tok_per_sec) for g in groups(placed)] if sweep is not None else []
    wanted = f"p{slo.percentile:g}"
    seen = {at for _, shown in series for at in shown}
    percentile = _percentiles(seen) or wanted
    instead = "" if seen <= {slo.percentile} else f"Where {wanted} is not told, {percentile} is shown."
    return {
        "throughput": throughput_chart(
            "levels-throughput",
            [mark_of(j, j.level.tok_per_sec or 0.0) for j in placed],
            curve,
            unit=unit,
            about=f"{many} from {num(f'{min(loads):.4g}')} to {num(f'{max(loads):.4g}')} {unit}."
            f" {said}. The table has every number.",
            decided=decided,
            bracket=bracket,
        ),
        "latency": latency_chart(
            "levels-latency",
            [one for one, _ in series],
            unit=unit,
            percentile=percentile,
            about=f"{percentile} of each limited latency at {many}, as a share of its limit."
            f" Above 100 % the limit is not met. {instead}{' ' * bool(instead)}The table has every number.",
            loads=loads,
            bracket=bracket,
        ),
        "instead": instead,
    }


def _series(placed: Sequence[Judged], slo: Slo) -> list[tuple[Series, set[float]]]:
    """The latencies that the SLO limits, at its percentile or those that tell of it, and which these are."""
    found: dict[str, tuple[list[Mark], set[float]]] = {}
    for judged in placed:
        for name, spread, limit in limited(judged.level, slo):
            marks, shown = found.setdefault(name, ([], set()))
            at = told_at(spread.at, slo.percentile)
            if at is not None:
                value = spread.at[at]
                shown.add(at)
                said = f"{name} p{at:g} {words.ms(value)} ms of {num(f'{limit:g}')}"
                marks.append(mark_of(judged, value / limit, said))
    return [(Series(name, marks), shown) for name, (marks, shown) in found.items()]


def mark_of(judged: Judged, value: float, said: str = "") -> Mark:
    """A level in a chart; what it says under the pointer is its tokens/s, or what is given."""
    level = judged.level
    said = said or f"{rate(level.tok_per_sec)} tok/s"
    at = load_words(level.arrival, level.load)
    return Mark(level.load or 0.0, value, judged.verdict.value, f"{at}: {said}, {judged.verdict}")


def decided_at(sweep: Throughput | None) -> tuple[float, float] | None:
    """Load and tokens/s of the level that gives the figure, where it has a place in a chart."""
    if sweep is None or sweep.load is None or not sweep.tok_per_sec or not isfinite(sweep.load):
        return None
    return sweep.load, sweep.tok_per_sec


def _bracket(placed: Sequence[Judged], sweep: Throughput | None) -> tuple[float, float] | None:
    """The loads between which the SLO ceases to be met: nothing is known of what lies between."""
    if sweep is None or sweep.load is None or sweep.bound != EDGE:
        return None
    above: list[LoadGroup] = [group for group in groups(placed) if group.load > sweep.load]
    return (sweep.load, above[0].load) if above else None
