"""A measurement's levels for others: as llm-d Benchmark Reports, and as a table.

A Benchmark Report holds one load level, so that a measurement is a list of them; their order is `stage`,
the measurement is the experiment (`eid`).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sizing.domain.levels import CONCURRENCY, POISSON, Level, Slo, Spread, judge
from sizing.measuring.files.report import GENERATOR, PERCENTILES, VERSION

_COLUMNS = ("mean", "p50", "p95", "p99")


@dataclass(frozen=True, slots=True)
class Meta:
    """What a report says beside the levels, as plain values.

    uid: the measurement's own; each level appends its number. model: the name that was served. tool,
    tool_version: what made the load. started_at, ended_at: ISO 8601.
    """

    uid: str
    model: str
    tool: str = GENERATOR
    tool_version: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    started_at: str | None = None
    ended_at: str | None = None
    description: str = ""
    keywords: Sequence[str] = field(default_factory=tuple)


def reports(levels: Sequence[Level], meta: Meta) -> list[dict[str, Any]]:
    """A Benchmark Report for each level, in their order; plain values for JSON."""
    return [_report(level, meta, stage) for stage, level in enumerate(levels)]


def report_json(levels: Sequence[Level], meta: Meta) -> str:
    """The Benchmark Reports as one JSON text: a list of them, which `read_results` reads back."""
    return json.dumps(reports(levels, meta), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def levels_csv(levels: Sequence[Level], meta: Meta, slo: Slo) -> str:
    """One line a level with its verdict under the SLO; times in ms, an empty cell is "not known"."""
    out = io.StringIO()
    rows = [_row(level, meta, slo) for level in levels]
    writer = csv.DictWriter(out, list(_row(Level(), meta, slo)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _row(level: Level, meta: Meta, slo: Slo) -> dict[str, Any]:
    judged = judge(level, slo)
    return {
        "model": meta.model,
        "arrival": level.arrival,
        "load": level.load,
        "tok_per_sec": level.tok_per_sec,
        "requests_per_sec": level.requests_per_sec,
        "duration_s": level.duration_s,
        "sent": level.sent,
        "completed": level.completed,
        "failed": level.failed,
        "conform": level.conform,
        "input_tokens": level.input_tokens,
        "output_tokens": level.output_tokens,
        **_cells("ttft", level.ttft),
        **_cells("tpot", level.tpot),
        **_cells("e2e", level.e2e),
        "verdict": str(judged.verdict),
        "why": judged.why,
    }


def _cells(name: str, known: Spread) -> dict[str, float | None]:
    values = {"mean": known.mean, **{f"p{at:g}": value for at, value in known.at.items()}}
    return {f"{name}_{column}_ms": values.get(column) for column in _COLUMNS}


def _report(level: Level, meta: Meta, stage: int) -> dict[str, Any]:
    times = {"start": meta.started_at, "end": meta.ended_at}
    if level.duration_s is not None:
        times["duration"] = f"PT{level.duration_s:.6f}S"
    return {
        "version": VERSION,
        "run": _present(
            uid=f"{meta.uid}-{stage}",
            eid=meta.uid,
            time=_present(**times) or None,
            description=meta.description or None,
            keywords=list(meta.keywords) or None,
        ),
        "scenario": {"load": _load(level, meta, stage)},
        "results": {"request_performance": {"aggregate": _aggregate(level)}},
    }


def _load(level: Level, meta: Meta, stage: int) -> dict[str, Any]:
    standard = _present(
        tool=meta.tool,
        tool_version=meta.tool_version,
        source="random",
        stage=stage,
        input_seq_len=_length(meta.input_tokens, level.input_tokens),
        output_seq_len=_length(meta.output_tokens, None) if meta.output_tokens else None,
        rate_qps=level.load if level.arrival == POISSON and level.load else None,
        concurrency=round(level.load) if level.arrival == CONCURRENCY and level.load else None,
    )
    return {
        "metadata": {"schema_version": "0.0.1"},
        "standardized": standard,
        "native": {"config": {GENERATOR: _beside(level, meta)}},
    }


def _length(asked: int | None, seen: float | None) -> dict[str, Any]:
    if asked is None and seen is not None:
        return {"distribution": "other", "value": seen}
    return {"distribution": "fixed", "value": asked or 0}


def _beside(level: Level, meta: Meta) -> dict[str, Any]:
    without_mean = {
        name: {PERCENTILES[p]: value for p, value in known.at.items() if p in PERCENTILES}
        for name, known in (("ttft", level.ttft), ("tpot", level.tpot), ("e2e", level.e2e))
        if known.known and known.mean is None
    }
    return _present(
        model=meta.model,
        arrival=level.arrival,
        duration_s=level.duration_s,
        conform=level.conform,
        sent_per_sec=level.sent_per_sec,
        delay_p95_s=level.delay_p95_s,
        all_tokens=level.all_tokens,
        streamed=level.streamed,
        cancelled=level.cancelled or None,
        counted=level.counted or None,
        failures=dict(level.failures) or None,
        warnings=list(level.warnings) or None,
        spreads_ms=without_mean or None,
    )


def _aggregate(level: Level) -> dict[str, Any]:
    requests = _present(
        total=(level.completed or 0) + (level.failed or 0) + (level.cut or 0),
        failures=level.failed,
        incomplete=level.cut,
        input_length=_mean(level.input_tokens, "count"),
        output_length=_mean(level.output_tokens, "count"),
    )
    latency = _present(
        time_to_first_token=_statistics(level.ttft, "ms"),
        time_per_output_token=_statistics(level.tpot, "ms/token"),
        request_latency=_statistics(level.e2e, "ms"),
    )
    throughput = _present(
        output_token_rate=_mean(level.tok_per_sec, "tokens/s"),
        request_rate=_mean(level.requests_per_sec, "queries/s"),
    )
    return {"requests": requests, "latency": latency, "throughput": throughput}


def _mean(value: float | None, units: str) -> dict[str, Any] | None:
    return None if value is None else {"units": units, "mean": value}


def _statistics(known: Spread, units: str) -> dict[str, Any] | None:
    if known.mean is None:
        return None
    at = {PERCENTILES[p]: value for p, value in sorted(known.at.items()) if p in PERCENTILES}
    return {"units": units, "mean": known.mean, **at}


def _present(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
