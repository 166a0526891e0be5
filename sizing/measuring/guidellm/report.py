"""What GuideLLM reported about one level."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sizing.domain.levels import POISSON, Level
from sizing.measuring.files import FileRefused, read_guidellm
from sizing.measuring.loadgen.request import CLOSED, CONNECT, CUT, TIMEOUT
from sizing.measuring.loadgen.stream import ERROR_IN_STREAM, MALFORMED
from sizing.measuring.seam import Load, MeasuringError

_STATUS = re.compile(r"\b(?:error|response) '([345]\d\d)\b")
_REASONS = (
    ("UNUSABLE_BACKEND_RESPONSE", "no token in the answer"),
    ("Streaming response returned an error", ERROR_IN_STREAM),
    ("JSONDecodeError", MALFORMED),
    ("without sending complete message body", CUT),
    ("RemoteProtocolError", CLOSED),
    ("ReadError", CLOSED),
    ("ConnectError", CONNECT),
    ("Timeout", TIMEOUT),
)
"""What GuideLLM says of a failed request; a page of HTML, or an answer in one piece, has no token to it."""


def read_report(path: Path, load: Load) -> Level:
    """The level of a report, with what only the maker can know of it; MeasuringError where it has none."""
    try:
        benchmark = json.loads(path.read_bytes())["benchmarks"][0]
        if benchmark["duration"] <= 0:
            return _ended_in_warmup(benchmark, load)
        (level,) = read_guidellm(path)
        return _completed(level, benchmark, load)
    except FileRefused as refused:
        raise MeasuringError(f"GuideLLM's report cannot be read: {refused}") from None
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise MeasuringError(f"GuideLLM's report is not of the known form: {error!r}") from None


def _completed(level: Level, benchmark: Any, load: Load) -> Level:
    requests = benchmark["requests"]
    answers = [*requests["successful"], *requests["errored"], *requests["incomplete"]]
    first, last = benchmark["start_time"], benchmark["end_time"]
    sent = [request["info"]["timings"]["request_start"] for request in answers]
    return replace(
        level,
        arrival=load.arrival,
        load=load.value,
        conform=_conform(benchmark["metrics"]),
        # Poisson gaps are random: there the delay against the schedule tells whether the client kept up.
        sent_per_sec=None if load.arrival == POISSON else _between(sent, first, last) / (last - first),
        all_tokens=float(sum(request["output_tokens"] or 0 for request in answers)),
        counted=any(answer["output_metrics"]["total_tokens"] is None for answer in requests["successful"]),
        failures=_failures(
            request for request in requests["errored"] if request["request_end_time"] >= first
        ),
    )


def _ended_in_warmup(benchmark: Any, load: Load) -> Level:
    """GuideLLM gave up, since too much failed; its figures are of a window that never began."""
    requests = benchmark["requests"]
    completed, failed = len(requests["successful"]), len(requests["errored"])
    return Level(
        arrival=load.arrival,
        load=load.value,
        sent=completed + failed,
        completed=completed,
        failed=failed,
        cut=len(requests["incomplete"]),
        failures=_failures(requests["errored"]),
        warnings=("the level ended within its warm-up",),
    )


def _conform(metrics: Any) -> int | None:
    """How many requests met every limit, as GuideLLM counted them; None where it could tell of none."""
    share: float | None = metrics["slo_attainment"]
    of: int = metrics["slo_determined_requests"]
    return None if share is None else round(share * of)


def _between(times: Iterable[float | None], first: float, last: float) -> int:
    return sum(at is not None and first <= at <= last for at in times)


def _failures(errored: Iterable[Any]) -> dict[str, int]:
    return dict(Counter(_reason(request["info"]["error"]) for request in errored))


def _reason(error: object) -> str:
    """Why a request failed: in the built-in generator's words where there are some, else in the error's."""
    text = str(error or "not told")
    if status := _STATUS.search(text):
        return f"http {status[1]}"
    for part, reason in _REASONS:
        if part in text:
            return reason
    return "".join(filter(str.isprintable, text))[:80]
