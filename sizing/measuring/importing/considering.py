"""What result files say together: a verdict for each point, a figure for each sweep, and what may be stored.

The points of all files form one sweep for each kind of arrival, since closed loop flatters. One of them
counts: that of the profile's own arrival, else another with a warning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import isfinite
from typing import Any

from sizing.domain.levels import CONCURRENCY, POISSON, Judged, Slo, Verdict, judge
from sizing.domain.throughput import LoadGroup, Throughput, at_slo, groups
from sizing.measuring.bench import OTHER_SHAPE, needed_requests
from sizing.measuring.files import DEFAULT_SLO, FilePoint, point_warnings, result_form
from sizing.measuring.importing.given import Asked, ReadFile
from sizing.models.fields import LARGEST_RATE

MOST_POINTS = 1000
"""Of all files of an import together; a sweep has some ten."""

FEW = "few_requests:"

_ARRIVALS = {POISSON: "open loop", CONCURRENCY: "closed loop", None: "a load that is not told"}


@dataclass(frozen=True, slots=True)
class Placed:
    """A load point with its verdict, and where it stands."""

    file: str
    point: FilePoint
    judged: Judged

    @property
    def place(self) -> str:
        return f"{self.file}: {self.point.place}" if self.point.place else self.file


@dataclass(frozen=True, slots=True)
class Sweep:
    """The points of one kind of arrival, and the throughput at the SLO that they show.

    deciding: the points that the figure is from. untold: it has none although the SLO was met, since only
    a client's tokenizer counted the tokens.
    """

    arrival: str | None
    points: tuple[Placed, ...]
    throughput: Throughput
    deciding: tuple[Placed, ...]
    untold: bool = False


@dataclass(frozen=True, slots=True)
class Considered:
    """What files say together.

    counting: the sweep that a measurement would rest on, None without a profile or without points.
    refused: why nothing may be stored, one line each, by the file's name; "" where it is no single file.
    warnings: what would stand beside the measurement. declared: when it was measured where the files do
    not say it, None where nobody said.
    """

    files: tuple[ReadFile, ...]
    asked: Asked | None
    sweeps: tuple[Sweep, ...]
    counting: Sweep | None
    refused: dict[str, list[str]]
    warnings: tuple[str, ...]
    declared: datetime | None = None

    @property
    def slo(self) -> Slo:
        return self.asked.slo if self.asked else DEFAULT_SLO

    @property
    def too_many(self) -> str:
        """That there are more points than can be one sweep, in words; empty where there are not."""
        count = sum(len(file.result.points) for file in self.files)
        if count <= MOST_POINTS:
            return ""
        return f"the files have {count:,} load points; at most {MOST_POINTS:,} are read together"

    @property
    def refused_lines(self) -> list[str]:
        return [line for lines in self.refused.values() for line in lines]

    def preview(self) -> dict[str, Any]:
        """All of it as plain values: each file with its points, each sweep, and what is refused."""
        return {
            "files": [file_form(file, self.slo) for file in self.files],
            "sweeps": [sweep_form(sweep, sweep is self.counting) for sweep in self.sweeps],
            "storable": self.asked is not None and not self.refused,
            "refused": self.refused_lines,
            "warnings": list(self.warnings),
        }


def consider(
    files: Sequence[ReadFile],
    asked: Asked | None = None,
    *,
    force: bool = False,
    leave_out: bool = False,
    declared: datetime | None = None,
    noted: Sequence[str] = (),
) -> Considered:
    """Judge and gather the points of files that were given together.

    asked: None: the default SLO judges, and nothing may be stored. force: points of another shape count,
    with a warning. leave_out: broken files, repeated ones and points of another shape are left out, with
    a warning; otherwise each of them refuses the whole. declared: when it was measured where the files do
    not say it. noted: warnings that are known beforehand.
    """
    slo = asked.slo if asked else DEFAULT_SLO
    placed, out, shapes = _sorted_out(files, slo, asked, force)
    sweeps = _sweeps(placed)
    counting = _counting(sweeps, asked)
    refused: dict[str, list[str]] = defaultdict(list)
    if not leave_out:
        for name, line in out:
            refused[name].append(line)
    if not refused:
        for name, line in _not_storable(counting, asked):
            refused[name].append(line)
    warnings: list[str] = []
    if asked and counting:
        warnings = [
            *noted,
            *_arrival_warnings(sweeps, counting, asked),
            *(shapes if force else ()),
            *([f"left out: {line}" for _, line in out] if leave_out else ()),
            *counting.throughput.warnings,
            *_deciding_warnings(counting, slo),
            *_mixed(counting),
        ]
    kept = tuple(dict.fromkeys(warnings))
    return Considered(tuple(files), asked, sweeps, counting, dict(refused), kept, declared)


def _sorted_out(
    files: Sequence[ReadFile], slo: Slo, asked: Asked | None, force: bool
) -> tuple[list[Placed], list[tuple[str, str]], list[str]]:
    """The points that count; file and line of what does not; and the other shapes that there are."""
    placed: list[Placed] = []
    out: list[tuple[str, str]] = []
    shapes: list[str] = []
    first_of: dict[str, str] = {}
    for file in files:
        name = file.result.file
        if file.result.error:
            out.append((name, file.result.error))
            continue
        if asked and (same := first_of.setdefault(file.sha256, name)) != name:
            out.append((name, f"{name}: each file once was expected, this is {same} again"))
            continue
        for point in file.result.points:
            here = Placed(name, point, judge(point.level, slo))
            other = _other_shape(point, asked) if asked else ""
            shapes += [other] if other else []
            if other and not force:
                out.append((name, f"{here.place}: {other}"))
            else:
                placed.append(here)
    return placed, out, shapes


def _other_shape(point: FilePoint, asked: Asked) -> str:
    """How the lengths of a point differ from those of the profile, in words; empty where they do not."""
    rows = (
        ("input", point.level.input_tokens, asked.input_tokens),
        ("output", point.level.output_tokens, asked.output_tokens),
    )
    odd = [
        f"{seen:,.0f} {word} tokens a request where {asked.profile} has {wanted:,}"
        for word, seen, wanted in rows
        if seen is not None and abs(seen - wanted) > OTHER_SHAPE * wanted
    ]
    return f"other shape: {', and '.join(odd)}" if odd else ""


def _sweeps(placed: Iterable[Placed]) -> tuple[Sweep, ...]:
    by_arrival: dict[str | None, list[Placed]] = defaultdict(list)
    for here in placed:
        by_arrival[here.judged.level.arrival].append(here)
    return tuple(_sweep(arrival, points) for arrival, points in by_arrival.items())


def _sweep(arrival: str | None, points: list[Placed]) -> Sweep:
    judged = [here.judged for here in points]
    by_load, found = groups(judged), at_slo(judged)
    group = _deciding(by_load)
    load = found.load if found.load is not None and isfinite(found.load) else None
    counting = {id(one) for one in group.counting}
    deciding = tuple(here for here in points if id(here.judged) in counting)
    if found.tok_per_sec is None or found.tok_per_sec > 0:
        return Sweep(arrival, tuple(points), replace(found, load=load), deciding)
    said = "the SLO is met, but there is no tok/s that the server counted"
    untold = Throughput(None, None, load, said, found.warnings)
    return Sweep(arrival, tuple(points), untold, deciding, untold=True)


def _deciding(by_load: Sequence[LoadGroup]) -> LoadGroup:
    """The load of the figure; where the lowest did not pass, the lowest."""
    best = by_load[0]
    for group in by_load:
        if group.verdict is not Verdict.PASS:
            break
        best = group
    return best


def _counting(sweeps: Sequence[Sweep], asked: Asked | None) -> Sweep | None:
    if asked is None:
        return None
    order = [asked.arrival, *(known for known in (POISSON, CONCURRENCY) if known != asked.arrival), None]
    return min(sweeps, key=lambda sweep: order.index(sweep.arrival), default=None)


def _not_storable(counting: Sweep | None, asked: Asked | None) -> Iterable[tuple[str, str]]:
    if asked is None:
        return
    if counting is None:
        yield "", "no load point is left that could be stored"
        return
    found = counting.throughput
    if counting.untold:
        for here in counting.deciding:
            yield here.file, f"{here.place}: {found.bracket}"
        return
    if found.tok_per_sec is not None and found.tok_per_sec > LARGEST_RATE:
        here = counting.deciding[0]
        yield here.file, f"{here.place}: {found.tok_per_sec:,.6g} tok/s are more than can be"
        return
    by_load = groups(here.judged for here in counting.points)
    if found.tok_per_sec is None and by_load[0].verdict is not Verdict.FAIL:
        here = counting.deciding[0]
        yield here.file, f"{here.place}: {found.bracket}"


def _arrival_warnings(sweeps: Sequence[Sweep], counting: Sweep, asked: Asked) -> Iterable[str]:
    if counting.arrival != asked.arrival:
        flatters = "; closed loop flatters" if counting.arrival == CONCURRENCY else ""
        yield f"{_ARRIVALS[counting.arrival]}: {asked.profile} says {asked.arrival}{flatters}"
    for sweep in sweeps:
        if sweep is not counting:
            count = len(sweep.points)
            yield (
                f"{count} point{'s' * (count > 1)} of {_ARRIVALS[sweep.arrival]} "
                f"do{'es' * (count == 1)} not count beside {_ARRIVALS[counting.arrival]}"
            )


def _deciding_warnings(sweep: Sweep, slo: Slo) -> Iterable[str]:
    """What is odd about the points that the figure is from."""
    for here in sweep.deciding:
        yield from (w for w in point_warnings(here.point, slo) if not w.startswith(FEW))
    levels = [here.point.level for here in sweep.deciding]
    counts = [
        n for level in levels if (n := level.completed if level.sent is None else level.sent) is not None
    ]
    needed = needed_requests(slo.percentile)
    if counts and max(counts) < needed:
        yield (
            f"{FEW} {max(counts):,} at the deciding level;"
            f" {needed:,} without a violation would prove p{slo.percentile:g}"
        )
    untold = [
        word
        for word, known in (
            ("input", any(level.input_tokens is not None for level in levels)),
            ("output", any(level.output_tokens is not None for level in levels)),
        )
        if not known
    ]
    if untold:
        words = " and ".join(untold)
        yield f"the files do not tell the {words} tokens of a request: are they the profile's?"


def _mixed(sweep: Sweep) -> Iterable[str]:
    """What the points of one sweep should have in common."""
    tools = dict.fromkeys(here.point.tool for here in sweep.points)
    models = dict.fromkeys(here.point.model for here in sweep.points if here.point.model)
    for words, names in (("load generators", tools), ("models", models)):
        if len(names) > 1:
            yield f"points of several {words} are one sweep here: {', '.join(names)}"


def file_form(file: ReadFile, slo: Slo) -> dict[str, Any]:
    """A file's result as plain values: file, tool, points, warnings, error."""
    form = result_form(file.result, slo)
    needed = needed_requests(slo.percentile)
    if needed == needed_requests(DEFAULT_SLO.percentile):
        return form
    # The reader's own warning is about the usual percentile.
    kept = [warning for warning in form["warnings"] if FEW not in warning]
    for point in file.result.points:
        sent = point.level.sent
        if sent is not None and 0 < sent < needed:
            where = f"{point.place}: " if point.place else ""
            proof = f"{needed:,} are needed to prove {slo.percentile:g} %"
            kept.append(f"{where}{FEW} {sent} requests, {proof}")
    return form | {"warnings": list(dict.fromkeys(kept))}


def sweep_form(sweep: Sweep, counts: bool) -> dict[str, Any]:
    """A sweep as plain values; `counts`: it is the one that a measurement would rest on."""
    found = sweep.throughput
    return {
        "arrival": sweep.arrival,
        "levels": len(sweep.points),
        "tok_per_sec": found.tok_per_sec,
        "bound": found.bound,
        "load": found.load,
        "bracket": found.bracket,
        "warnings": list(found.warnings),
        "counts": counts,
    }
