"""What an import begins with: files that were read, and the profile they are to speak for."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from sizing.domain.levels import Slo
from sizing.measuring.files import FileRefused, FileResult, read_results
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
    when = None if result.error else _ended_at(data)
    return ReadFile(result, len(data), hashlib.sha256(data).hexdigest(), when)


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
_EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)


def _ended_at(data: bytes) -> datetime | None:
    """The latest moment that a file names; times without a zone are taken as UTC."""
    try:
        text = utf8(data)
    except FileRefused:
        return None
    if text[:1] not in (b"{", b"["):
        return None
    found = (_moment(match) for match in _MOMENT.finditer(text))
    return max((moment for moment in found if moment and moment >= _EARLIEST), default=None)


def _moment(match: re.Match[bytes]) -> datetime | None:
    words, seconds = match[2], match[3]
    try:
        if seconds:
            return datetime.fromtimestamp(float(seconds), UTC)
        text = words.decode()
        if re.fullmatch(r"\d{8}-\d{6}", text):
            return datetime.strptime(text, "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
