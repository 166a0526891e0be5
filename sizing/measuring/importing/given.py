"""What an import begins with: files that were read, and the profile they are to speak for."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from sizing.domain.levels import Slo
from sizing.measuring.files import FileRefused, FileResult, points_form, read_results, yaml_reports
from sizing.measuring.files.texts import utf8


@dataclass(frozen=True, slots=True)
class Asked:
    """The profile that the files are to speak for: its shape, its SLO, and how its load arrives."""

    profile: str
    input_tokens: int
    output_tokens: int
    slo: Slo
    arrival: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that was read: its points or its error, and the latest moment it names, None where none."""

    result: FileResult
    size: int
    sha256: str
    ended_at: datetime | None = None


def read_file(name: str, data: bytes) -> ReadFile:
    """Read a result file from memory; a broken one has its reason in `result.error`."""
    result = read_results(name, data)
    if odd := _not_kept(result):
        result = FileResult(result.file, error=f"{result.file}: {odd}")
    when = None if result.error else _ended_at(data)
    return ReadFile(result, len(data), hashlib.sha256(data).hexdigest(), when)


# Far above anything that is measured, and far enough below the largest number that sums stay finite.
_MOST = 1e100


def _not_kept(result: FileResult) -> str:
    """What of a result no database keeps, in words: a number that is infinite or none; empty otherwise."""
    try:
        forms = [
            {**form, **point.level.as_dict()}
            for point, form in zip(result.points, points_form(result.points), strict=True)
        ]
    except (ArithmeticError, ValueError):
        return "numbers were expected that can be reckoned with"
    for point, form in zip(result.points, forms, strict=True):
        if name := _beyond(form):
            where = f"{point.place}: " if point.place else ""
            return f"{where}{name} was expected to be a finite number below 1e100"
    return ""


def _beyond(value: Any, name: str = "") -> str:
    """The name under which a number stands that is not finite or too large; empty where there is none."""
    if isinstance(value, Mapping):
        found = (_beyond(below, f"{name}.{key}" if name else str(key)) for key, below in value.items())
    elif isinstance(value, list | tuple):
        found = (_beyond(below, name) for below in value)
    else:
        # Not a number compares with nothing.
        return "" if not isinstance(value, int | float) or abs(value) < _MOST else name
    return next(filter(None, found), "")


def refused(name: str, error: str) -> ReadFile:
    """A file that was not even read, with the reason."""
    return ReadFile(FileResult(name, error=error), 0, "")


def with_labels(names: Iterable[str]) -> list[str]:
    """Names that tell the files apart: the second `result.json` becomes `result.json (2)`."""
    seen: set[str] = set()
    labels = []
    for name in names:
        label, number = name, 1
        while label in seen:
            number += 1
            label = f"{name} ({number})"
        seen.add(label)
        labels.append(label)
    return labels


# Keys under which the load generators write when a run took place: vLLM and InferenceX `date`, AIPerf and
# GuideLLM `end_time`, llmperf `timestamp`, Benchmark Reports `end`.
_MOMENT = re.compile(
    rb'"(date|end_time|timestamp|end)"[ \t\r\n]{0,8}:[ \t\r\n]{0,8}'
    rb'(?:"([0-9T:.Z+\- ]{10,40})"|([0-9]{9,10}(?:\.[0-9]{1,12})?)[,\s}])'
)
# The same in YAML, where no quotes are needed.
_YAML_MOMENT = re.compile(
    rb"""(?:^|[{,])[ \t-]{0,80}["']?(end)["']?[ \t]{0,8}:[ \t]{1,8}"""
    rb"""["']?([0-9T:.Z+\- ]{9,39}[0-9Z])["']?[ \t]{0,80}(?=[#,}\r\n]|\Z)""",
    re.MULTILINE,
)
_EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)


def _ended_at(data: bytes) -> datetime | None:
    """The latest moment that a file names; times without a zone are taken as UTC."""
    try:
        text = utf8(data)
    except FileRefused:
        return None
    if yaml_reports.matches(text):
        found = [_told(match[2]) for match in _YAML_MOMENT.finditer(text)]
    elif text.lstrip()[:1] in (b"{", b"["):
        found = [_moment(match) for match in _MOMENT.finditer(text)]
    else:
        return None
    return max((moment for moment in found if moment and moment >= _EARLIEST), default=None)


def declared_time(text: str, now: datetime) -> datetime:
    """A time in ISO 8601 that somebody declares, in UTC where it has no zone; ValueError if it is none."""
    try:
        moment = datetime.fromisoformat(text.strip())
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(
            "the time of a measurement was expected in ISO 8601, like 2026-11-30T14:05Z"
        ) from None
    if moment > now:
        raise ValueError(
            f"a time of measurement that has passed was expected, not {moment:%Y-%m-%d %H:%M} UTC"
        )
    if moment < _EARLIEST:
        raise ValueError(f"a time of measurement from {_EARLIEST:%Y} on was expected")
    return moment


def _moment(match: re.Match[bytes]) -> datetime | None:
    words, seconds = match[2], match[3]
    if not seconds:
        return _told(words)
    try:
        return datetime.fromtimestamp(float(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _told(words: bytes) -> datetime | None:
    text = words.decode()
    try:
        if re.fullmatch(r"\d{8}-\d{6}", text):
            return datetime.strptime(text, "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
