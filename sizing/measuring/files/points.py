"""What the readers give: load points of result files, and how they are shown.

Times are in milliseconds where a name ends in `_ms` and in seconds where it ends in `_s`, throughput in
tokens per wall second. None is "the file does not say".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite, isinf
from typing import Any

from sizing.domain.levels import Level, Slo, Spread, judge
from sizing.domain.throughput import cross_checks

DEFAULT_SLO = Slo(ttft_ms=500.0, itl_ms=50.0, percentile=95.0)
"""The SLO that points are judged by where no profile is given."""

FEW_REQUESTS = 73
"""Below this, even a level without a violation does not prove that 95 % conform."""

_SHOWN_PERCENTILES = (50.0, 90.0, 95.0, 99.0)


class FileRefused(Exception):  # noqa: N818  it reads as what it says
    """A file that cannot be read: the place in it and what was expected, in one line.

    tool: the load generator where the file was recognized.
    """

    tool: str | None = None


@dataclass(frozen=True, slots=True)
class FilePoint:
    """One load point of a file: the level that is judged, and what else the file says for people.

    place: where in the file it stands, empty where the file is that point. output_tok_s: as the file
    reports it; `level.tok_per_sec` is None where a client's tokenizer is known to have counted wrongly,
    and the server's count where the file has both. request_rate_target: requests/s asked, infinite where
    all were sent at once. said: further values by the name they are shown under.
    """

    tool: str
    level: Level
    place: str = ""
    model: str | None = None
    concurrency: float | None = None
    request_rate_target: float | None = None
    output_tok_s: float | None = None
    total_tok_s: float | None = None
    itl: Spread = field(default_factory=Spread)
    said: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileResult:
    """What one file gave. Where `error` is set, in one line that names the file, there are no points.

    tool: also beside an error, where the kind of file was recognized.
    """

    file: str
    tool: str | None = None
    points: tuple[FilePoint, ...] = ()
    warnings: tuple[str, ...] = ()
    error: str | None = None


def finite(point: FilePoint) -> FilePoint:
    """The point; FileRefused where a figure is not finite, which only the asked rate may be."""
    form = asdict(point) | {"request_rate_target": None}
    if (name := _not_finite(form)) is not None:
        raise FileRefused(f"{point.place or 'the document'}: a finite {name} was expected")
    return point


def _not_finite(value: Any, name: str = "figure") -> str | None:
    if isinstance(value, Mapping):
        found = (_not_finite(below, str(key)) for key, below in value.items())
    elif isinstance(value, list | tuple):
        found = (_not_finite(below, name) for below in value)
    else:
        return name if isinstance(value, float) and not isfinite(value) else None
    return next((wrong for wrong in found if wrong is not None), None)


def points_form(points: Iterable[FilePoint], slo: Slo = DEFAULT_SLO) -> list[dict[str, Any]]:
    """The points as plain values for JSON and tables, each with its `verdict` and `why` under the SLO."""
    return [_form(point, slo) for point in points]


def result_form(result: FileResult, slo: Slo = DEFAULT_SLO) -> dict[str, Any]:
    """A file's result as plain values: file, tool, points, warnings, error."""
    return {
        "file": result.file,
        "tool": result.tool,
        "points": points_form(result.points, slo),
        "warnings": all_warnings(result, slo),
        "error": result.error,
    }


def all_warnings(result: FileResult, slo: Slo = DEFAULT_SLO) -> list[str]:
    """The file's warnings and those of its points, these with their place; each once."""
    found = list(result.warnings)
    for point in result.points:
        where = f"{point.place}: " if point.place else ""
        found += [f"{where}{warning}" for warning in point_warnings(point, slo)]
    return list(dict.fromkeys(found))


def point_warnings(point: FilePoint, slo: Slo = DEFAULT_SLO) -> tuple[str, ...]:
    """What is odd about a point: as its reader found, too few requests, figures that do not add up."""
    level = point.level
    few: tuple[str, ...] = ()
    if level.sent is not None and 0 < level.sent < FEW_REQUESTS:
        few = (f"few_requests: {level.sent} requests, {FEW_REQUESTS} are needed to prove 95 %",)
    return (*level.warnings, *few, *cross_checks(level, slo))


def _form(point: FilePoint, slo: Slo) -> dict[str, Any]:
    level, judged = point.level, judge(point.level, slo)
    return {
        "model": point.model,
        "concurrency": _whole(point.concurrency),
        "request_rate_target": _rate(point.request_rate_target),
        "completed": level.completed,
        "failed": level.failed,
        "duration_s": level.duration_s,
        "request_rate": level.requests_per_sec,
        "output_tok_s": point.output_tok_s,
        "total_tok_s": point.total_tok_s,
        "isl_mean": level.input_tokens,
        "osl_mean": level.output_tokens,
        "ttft_ms": spread_form(level.ttft),
        "tpot_ms": spread_form(level.tpot),
        "itl_ms": spread_form(point.itl),
        "e2e_ms": spread_form(level.e2e),
        "streaming": level.streamed,
        **point.said,
        "verdict": str(judged.verdict),
        "why": judged.why,
    }


def spread_form(spread: Spread) -> dict[str, float | None] | None:
    """Mean and the usual percentiles, those that are known; None where nothing is."""
    if not spread.known:
        return None
    form: dict[str, float | None] = {} if spread.mean is None else {"mean": spread.mean}
    return form | {f"p{at:g}": spread.at[at] for at in _SHOWN_PERCENTILES if at in spread.at}


def _rate(target: float | None) -> float | str | None:
    return "inf" if target is not None and isinf(target) else target


def _whole(value: float | None) -> float | None:
    return int(value) if value is not None and value.is_integer() else value
