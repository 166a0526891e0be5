"""Latencies of flat result files: keys such as `p95_ttft_ms`, and values request by request.

vLLM, SGLang and InferenceX write one object with a key for each figure; with details also lists of one
value a request, in seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from sizing.domain.levels import Spread
from sizing.measuring.files.values import Node, spread

_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,3})?)_")
_WANTED = (50.0, 90.0, 95.0, 99.0)


def flat(document: Node, suffix: str, factor: float = 1.0) -> Spread:
    """The spread of the keys `mean_<suffix>`, `median_<suffix>` and `p<percentile>_<suffix>`."""
    at: dict[float, Node] = {}
    if document[f"median_{suffix}"].there:
        at[50.0] = document[f"median_{suffix}"]
    for key in document.names():
        match = _PERCENTILE.match(key)
        if match and key[match.end() :] == suffix:
            at[float(match[1])] = document[key]
    return spread(document[f"mean_{suffix}"], at.items(), factor)


@dataclass(frozen=True, slots=True)
class Details:
    """One value a request that gave tokens without an error: TTFT, TPOT and end to end in ms.

    empty: requests that ended without an error and without a token. failed: those with an error, None
    where the file does not have them. requests: all of them, None where only some are there.
    """

    ttft: Sequence[float]
    tpot: Sequence[float]
    e2e: Sequence[float]
    empty: int
    failed: int | None = None
    requests: int | None = None


def details(document: Node) -> Details | None:
    """The values request by request; None where the file does not have them.

    Some versions keep only the end-to-end times, which are 0 for requests that failed.
    """
    if not document["ttfts"].there or not document["output_lens"].there:
        whole_times = [whole * 1000 for whole in document["latencies"].numbers() if whole]
        return Details([], [], whole_times, 0) if whole_times else None
    rows = zip_longest(
        document["ttfts"].numbers(),
        document["output_lens"].numbers(),
        _whole_times(document),
        [error.value for error in document["errors"].items()],
        fillvalue=None,
    )
    ttfts, tpots, e2es, empty, failed, requests = [], [], [], 0, 0, 0
    told = document["errors"].there
    for ttft, tokens, whole, error in rows:
        requests += 1
        if error:
            failed += 1
            continue
        if not tokens:
            empty += told
            continue
        if ttft is None:
            continue
        ttfts.append(ttft * 1000)
        if whole is not None:
            e2es.append(whole * 1000)
            if tokens > 1:
                tpots.append((whole - ttft) * 1000 / (tokens - 1))
    return Details(ttfts, tpots, e2es, empty, failed if told else None, requests)


def _whole_times(document: Node) -> list[float | None]:
    """End-to-end seconds a request: as given, else the first token's plus the gaps after it."""
    if document["latencies"].there:
        return document["latencies"].numbers()
    if not document["itls"].there:
        return []
    gaps = [sum(gap or 0.0 for gap in element.numbers()) for element in document["itls"].items()]
    firsts = document["ttfts"].numbers()
    return [None if first is None else first + gap for first, gap in zip(firsts, gaps, strict=False)]


def completed_by(known: Spread, values: Sequence[float]) -> tuple[Spread, list[str]]:
    """The spread with its 95th percentile from the single values, or wholly from these; what was added."""
    if not values:
        return known, []
    found = _spread_of(values)
    added = {p: value for p, value in found.at.items() if p not in known.at and (p == 95 or not known.known)}
    mean = found.mean if known.mean is None else known.mean
    return Spread(mean, {**known.at, **added}), [f"p{p:g}" for p in added]


def _spread_of(values: Sequence[float]) -> Spread:
    found = np.percentile(np.asarray(values), _WANTED)
    return Spread(float(np.mean(values)), dict(zip(_WANTED, map(float, found), strict=True)))


def names(of: Iterable[tuple[str, list[str]]]) -> list[str]:
    """The names `ttft_ms.p95` of percentiles that were derived, by the spread that they belong to."""
    return [f"{name}.{percentile}" for name, percentiles in of for percentile in percentiles]
