"""The result that `vllm bench serve` and `sglang.bench_serving` print, from a log or a terminal.

Each banner begins a load point. Its lines are turned into the keys that the tool writes to its files, so
that the same reader takes them; they have two decimals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sizing.measuring.files import sglang, vllm
from sizing.measuring.files.points import FilePoint, FileRefused
from sizing.measuring.files.values import Node

BANNER = b" Serving Benchmark Result ="

MOST_LINES = 200
"""A result is shorter; what follows is not its."""

_PREFIX = re.compile(r"^\([^)]{1,80}\)\s*")
_LINE = re.compile(r"^([^:]{1,80}):\s+(\S{1,40})\s*$")
_LATENCY = re.compile(r"^(mean|median|p[\d.]{1,6}) (ttft|tpot|itl|e2el|e2e latency) \(ms\)$")
_KEYS = {
    "successful requests": "completed",
    "failed requests": "failed",
    "maximum request concurrency": "max_concurrency",
    "max request concurrency": "max_concurrency",
    "max reqeust concurrency": "max_concurrency",
    "request rate configured (rps)": "request_rate",
    "traffic request rate": "request_rate",
    "benchmark duration (s)": "duration",
    "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens",
    "request throughput (req/s)": "request_throughput",
    "request goodput (req/s)": "request_goodput",
    "output token throughput (tok/s)": "output_throughput",
    "total token throughput (tok/s)": "total_token_throughput",
    "concurrency": "concurrency",
    "backend": "backend",
}


def matches(text: bytes) -> bool:
    """Whether a banner stands in the text and ends its line, which it never does inside JSON."""
    at = text.find(BANNER)
    return at >= 0 and not text[at + len(BANNER) : at + 200].partition(b"\n")[0].strip(b"= \t\r")


def read(text: bytes) -> Iterator[FilePoint]:
    rate: str | None = None
    found: dict[str, Any] | None = None
    start = 0
    for number, raw in enumerate(text.split(b"\n"), 1):
        if found is not None and (_ends(raw) or number - start > MOST_LINES or BANNER in raw):
            yield _point(found, rate, start)
            found, rate = None, None
        if BANNER in raw:
            found, start = {}, number
            continue
        line = _LINE.match(_PREFIX.sub("", raw[:400].decode("utf-8", "replace").strip()))
        if line is None:
            continue
        if found is not None:
            _take(found, line[1].strip().lower(), line[2])
        elif line[1].strip().lower() == "traffic request rate":
            rate = line[2]
    if found is not None:
        yield _point(found, rate, start)


def _ends(raw: bytes) -> bool:
    line = raw[:200].strip()
    return len(line) > 20 and not line.strip(b"=")


def _take(found: dict[str, Any], label: str, value: str) -> None:
    latency = _LATENCY.match(label)
    if latency:
        key = f"{latency[1]}_{latency[2].replace(' ', '_')}_ms"
    elif label in _KEYS:
        key = _KEYS[label]
    else:
        return
    found[key] = value if key == "backend" else _number(value)


def _number(value: str) -> float | str | None:
    """A number; "inf" stays text, which means unlimited; "not" (set) is none."""
    if value == "inf":
        return value
    try:
        return float(value)
    except ValueError:
        return None


def _point(found: dict[str, Any], rate: str | None, line: int) -> FilePoint:
    node = Node(found, f"line {line}: ")
    by_sglang = "backend" in found
    try:
        for key in ("completed", "output_throughput"):
            if not node[key].there:
                raise node[key].refused("a line with this figure")
        if "request_rate" not in found and rate is not None:
            found["request_rate"] = _number(rate)
        point = next(iter((sglang.read if by_sglang else vllm.read_vllm)(node)))
    except FileRefused as refused:
        refused.tool = sglang.TOOL if by_sglang else vllm.VLLM
        raise
    return replace(point, place=f"line {line}")
