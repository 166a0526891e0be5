"""What of considered files is stored: a measurement with its levels, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from sizing.measuring.files import point_warnings
from sizing.measuring.files.values import shown_text
from sizing.measuring.importing.considering import Considered, Placed, Sweep

UNDATED = "the files do not say when they were measured; the time of the import counts"


def finding(considered: Considered, now: datetime) -> dict[str, Any] | None:
    """What a measurement of the files would be, for JSON; None where something is refused.

    asked: the profile as the verdicts know it, so that a later change of it can be told.
    """
    sweep, asked = considered.counting, considered.asked
    if sweep is None or asked is None or considered.refused:
        return None
    found = sweep.throughput
    tools = list(dict.fromkeys(here.point.tool for here in sweep.points))
    form: dict[str, Any] = plain(
        {
            "asked": asked.as_dict(),
            "tok_per_sec": found.tok_per_sec,
            "bound": found.bound,
            "bracket": found.bracket,
            "source": tools[0].partition(" ")[0],
            "generator": ", ".join(tools),
            "measured_at": measured_at(considered, now).isoformat(),
            "warnings": warnings(considered, now),
            "workload": _workload(sweep) | {"slo": asdict(asked.slo)},
            "levels": [_level(here, considered) for here in sweep.points],
        }
    )
    return form


def shown(considered: Considered, now: datetime) -> dict[str, Any]:
    """The preview of what was considered for people, with the levels of one sweep to draw; for JSON.

    levels: those of the sweep that counts, else of the largest, by file and place. slo: what judged them.
    measured_at: of the measurement that it would be, None where it would be none.
    """
    sweep = considered.counting or max(considered.sweeps, key=lambda s: len(s.points), default=None)
    levels = [
        {"file": here.file, "place": here.point.place, **_level(here, considered)}
        for here in (sweep.points if sweep else ())
    ]
    counts = considered.counting is not None
    form: dict[str, Any] = plain(
        considered.preview()
        | {
            "warnings": warnings(considered, now),
            "levels": levels,
            "slo": asdict(considered.slo),
            "measured_at": measured_at(considered, now).isoformat() if counts else None,
            "declared_at": considered.declared.isoformat() if considered.declared else None,
        }
    )
    return form


def warnings(considered: Considered, now: datetime) -> list[str]:
    """What would stand beside the measurement, with what is odd about its time."""
    if considered.counting is None:
        return list(considered.warnings)
    named = _named(considered)
    taken = "the declared time" if considered.declared else "the time of the import"
    odd = []
    if named is None and considered.declared is None:
        odd = [UNDATED]
    elif named is not None and named[0] > now:
        odd = [f"{named[1]} says {named[0]:%Y-%m-%d %H:%M} UTC, which is in the future; {taken} counts"]
    return [*considered.warnings, *odd]


def measured_at(considered: Considered, now: datetime) -> datetime:
    """When the sweep that counts was measured: as its files say, else as declared, else now."""
    named = _named(considered)
    if named is not None and named[0] <= now:
        return named[0]
    return considered.declared or now


def _named(considered: Considered) -> tuple[datetime, str] | None:
    """The latest moment that the files of the sweep that counts name, and the file; None where none does."""
    sweep = considered.counting
    names = {here.file for here in sweep.points} if sweep else set()
    return max(
        (
            (file.ended_at.astimezone(UTC), file.result.file)
            for file in considered.files
            if file.ended_at and file.result.file in names
        ),
        default=None,
    )


def _workload(sweep: Sweep) -> dict[str, Any]:
    """The shape as it was observed where the figure is from, and how the load arrived."""
    levels = [here.point.level for here in sweep.deciding]
    return {
        "input_tokens": _mean([level.input_tokens for level in levels]),
        "output_tokens": _mean([level.output_tokens for level in levels]),
        "arrival": sweep.arrival,
        "files": list(dict.fromkeys(here.file for here in sweep.points)),
    }


def _mean(values: Sequence[float | None]) -> float | int | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    mean = round(sum(known) / len(known), 1)
    return int(mean) if mean.is_integer() else mean


def _level(here: Placed, considered: Considered) -> dict[str, Any]:
    """A level with all that is odd about it, and its kinds of failures fit to be shown."""
    level = here.judged.level
    odd = point_warnings(here.point, considered.slo)
    failures = {shown_text(kind): count for kind, count in level.failures.items()}
    observed = replace(level, warnings=odd, failures=failures)
    return {"verdict": str(here.judged.verdict), "why": here.judged.why, "observed": observed.as_dict()}


def plain(value: Any) -> Any:
    """Values that any database keeps as JSON: without NUL and lone surrogates, whoever wrote the file."""
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {plain(name): plain(below) for name, below in value.items()}
    return [plain(below) for below in value] if isinstance(value, list | tuple) else value
