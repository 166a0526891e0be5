"""What the page of an import says: how far it is, what the files show, what would be stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.safestring import SafeString

from sizing.admin.charts import mark_key
from sizing.admin.measured import words
from sizing.admin.measured.level_table import Listed, listed_part, told_at
from sizing.domain.levels import CONCURRENCY, POISSON, Judged, Level, Slo, Verdict, load_words
from sizing.measuring.files import DEFAULT_SLO
from sizing.models import BenchFile, BenchImport, Measurement
from sizing.templatetags.desk import age, num, rate, size

State = BenchImport.State

SIGNS = {State.QUEUED: "…", State.RUNNING: "▶", State.DONE: "?", State.FAILED: "✕", State.STORED: "✓"}
NAMES = {
    State.QUEUED: "waiting",
    State.RUNNING: "being read",
    State.DONE: "not stored yet",
    State.FAILED: "not read",
    State.STORED: "stored",
}
ASKED = {
    BenchImport.Trigger.ADMIN: "on a page",
    BenchImport.Trigger.API: "by the API",
    BenchImport.Trigger.COMMAND: "by a command",
}
ARRIVALS = {POISSON: "open loop", CONCURRENCY: "closed loop", None: "load not told"}
ACTIVE = (State.QUEUED, State.RUNNING)

OTHER_SHAPE = ": other shape: "


@dataclass(frozen=True, slots=True)
class PointRow:
    """A load point of a file as the list of files shows it; numbers are texts."""

    load: str
    verdict: str
    key: SafeString
    why: str
    tok_per_sec: str
    completed: str
    failed: str
    latencies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file as it was read: its points, or in `error` why there are none."""

    name: str
    size: str
    tool: str
    error: str
    points: tuple[PointRow, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SweepRow:
    """What the points of one kind of arrival show together."""

    arrival: str
    points: str
    bracket: str
    counts: bool


def slo_of(row: BenchImport) -> Slo:
    """The SLO that judged the points: the profile's may have changed since."""
    if "slo" in row.preview:
        return Slo(**row.preview["slo"])
    return row.profile.slo if row.profile else DEFAULT_SLO


def what(row: BenchImport) -> str:
    """What an import is for: `llama (tp4) on chat`."""
    on = f" on {row.profile.name}" if row.profile else ""
    if row.variant is None:
        return f"to look at{on}"
    return f"{row.variant.model.name} ({row.variant.name}){on}"


def asked(row: BenchImport) -> str:
    """Who gave the files, and how."""
    where = ASKED[BenchImport.Trigger(row.trigger)]
    return f"by {row.requested_by}, {where}" if row.requested_by else where


def sentence(row: BenchImport, now: datetime) -> str:
    """How far an import is, or what its files show."""
    if row.state == State.QUEUED:
        waited = age((now - row.queued_at).total_seconds())
        return f"Waiting for {waited}: a worker reads the files as soon as one is free."
    if row.state == State.RUNNING:
        return "A worker reads the files."
    if row.state == State.FAILED:
        return "The files were not read."
    counting = counting_sweep(row)
    if counting is None:
        return "The files are read, to look at." if row.preview.get("sweeps") else "No load point is left."
    on = row.profile.name if row.profile else ""
    without = "Without what is refused, one" if row.preview.get("refused") else "One"
    if counting["tok_per_sec"]:
        least = "at least " if counting["bound"] == Measurement.Bound.FLOOR else ""
        return f"{without} replica serves {least}{rate(counting['tok_per_sec'])} tok/s on {on}."
    if counting["bracket"].startswith("not met"):
        return f"{without} replica does not meet the SLO of {on}, not even at the lowest load tried."
    return f"The files give no figure for {on}."


def counting_sweep(row: BenchImport) -> dict[str, Any] | None:
    """The sweep that the measurement rests on, or would; None without one."""
    return next((sweep for sweep in row.preview.get("sweeps", ()) if sweep["counts"]), None)


def of_other_shape(row: BenchImport) -> bool:
    """Whether something is refused that `force` would take."""
    return not row.force and any(OTHER_SHAPE in line for line in row.preview.get("refused", ()))


def levels_of(row: BenchImport) -> dict[str, Any]:
    """The charts and the table of the sweep that counts, else of the largest."""
    listed = [
        Listed(
            position,
            Judged(Level.from_dict(one["observed"]), Verdict(one["verdict"]), one["why"]),
            f"{one['file']}: {one['place']}" if one["place"] else one["file"],
        )
        for position, one in enumerate(row.preview.get("levels", ()), 1)
    ]
    return listed_part(listed, slo_of(row))


def sweeps_of(row: BenchImport) -> list[SweepRow]:
    """The sweeps, where there are several."""
    found = row.preview.get("sweeps", ())
    if len(found) < 2:
        return []
    return [
        SweepRow(
            ARRIVALS.get(one["arrival"], str(one["arrival"])),
            num(one["levels"]),
            one["bracket"],
            one["counts"],
        )
        for one in found
    ]


def files_of(row: BenchImport, kept: Sequence[BenchFile]) -> list[FileRow]:
    """The files in the order in which they were given, with all their points."""
    forms = row.preview.get("files", ())
    if not forms:
        return [FileRow(file.name, size(file.size), "", "", (), ()) for file in kept]
    sizes = {file.name: size(file.size) for file in kept}
    slo = slo_of(row)
    return [
        FileRow(
            name=form["file"],
            size=sizes.get(form["file"], ""),
            tool=form["tool"] or "",
            error=(form["error"] or "").removeprefix(f"{form['file']}: "),
            points=tuple(_point(point, slo) for point in form["points"]),
            warnings=tuple(form["warnings"]),
        )
        for form in forms
    ]


def latency_names(slo: Slo) -> list[str]:
    """The columns of the latencies that an SLO limits."""
    rows = (("TTFT", slo.ttft_ms), ("TPOT", slo.itl_ms), ("end to end", slo.e2e_ms))
    return [f"{name} p{slo.percentile:g} (ms)" for name, limit in rows if limit is not None]


def _point(form: Mapping[str, Any], slo: Slo) -> PointRow:
    rows = (("ttft_ms", slo.ttft_ms), ("tpot_ms", slo.itl_ms), ("e2e_ms", slo.e2e_ms))
    return PointRow(
        load=_load(form),
        verdict=form["verdict"],
        key=mark_key(form["verdict"]),
        why=form["why"],
        tok_per_sec=rate(form["output_tok_s"]),
        completed=num(form["completed"]),
        failed=num(form["failed"]),
        latencies=tuple(_latency(form[key] or {}, slo) for key, limit in rows if limit is not None),
    )


def _latency(told: Mapping[str, float], slo: Slo) -> str:
    """The value at the SLO's percentile, else at one that tells of it, named: `p99 61.5`."""
    known = [float(name[1:]) for name in told if name != "mean"]
    at = told_at(known, slo.percentile)
    if at is None:
        return words.ms(None)
    value = words.ms(told[f"p{at:g}"])
    return value if at == slo.percentile else f"p{at:g} {value}"


def _load(form: Mapping[str, Any]) -> str:
    asked, streams = form["request_rate_target"], form["concurrency"]
    told = [] if asked in (None, "inf") else [load_words(POISSON, asked)]
    told += [] if streams is None else [load_words(CONCURRENCY, streams)]
    return ", ".join(told) or load_words(None, None)


def stored_facts(row: BenchImport, files: int) -> list[tuple[str, str]]:
    """What is stored when an import is: name and value; empty where nothing can be."""
    found = row.finding
    if not found:
        return []
    figure = "the SLO is not met: it counts for nothing"
    if found["tok_per_sec"] is not None:
        bound = words.BOUNDS.get(found["bound"])
        said = f", {found['bound']}: {bound}" if bound else ""
        figure = f"{rate(found['tok_per_sec'])} tok/s{said}"
    return [
        ("figure", figure),
        ("workload", words.workload_words(found["workload"])),
        ("measured", f"{datetime.fromisoformat(found['measured_at']):%Y-%m-%d %H:%M} UTC"),
        ("how", found["generator"]),
        ("kept", f"{count(len(found['levels']), 'level')} and {count(files, 'whole file')}"),
    ]


def count(number: int, noun: str) -> str:
    return f"{num(number)} {noun}{'s' * (number != 1)}"
