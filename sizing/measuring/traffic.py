"""What a replica's own counters say of a level: foreign traffic, another token count, cached prompts."""

from __future__ import annotations

from sizing.domain.levels import Level
from sizing.measuring.engine import Counters

MISMATCH = 0.03
CACHED = 0.05


def busy(before: Counters | None) -> str:
    """A warning where a replica serves others before a level begins, or ""."""
    if before is None or not (before.running or before.waiting):
        return ""
    total = (before.running or 0) + (before.waiting or 0)
    return f"the replica was serving {total:,.0f} other requests when the level began"


def compare(before: Counters | None, after: Counters | None, level: Level) -> tuple[str, ...]:
    """Warnings from the counters before and after a level that received `all_tokens` in all."""
    if before is None or after is None:
        return ()
    return tuple(filter(None, (_tokens(before, after, level), _cached(before, after))))


def _tokens(before: Counters, after: Counters, level: Level) -> str:
    made, got = _grown(before.generated, after.generated), level.all_tokens
    if made is None or not got or abs(made - got) <= MISMATCH * got:
        return ""
    lost = "others use it, or tokens were lost on the way"
    reason = lost if made > got else "its own count is lower"
    return f"the replica counts {made:,.0f} tokens made, {got:,.0f} came: {reason}"


def _cached(before: Counters, after: Counters) -> str:
    hits, asked = (
        _grown(before.cache_hits, after.cache_hits),
        _grown(before.cache_queries, after.cache_queries),
    )
    if not hits or not asked or hits / asked <= CACHED:
        return ""
    return f"{100 * hits / asked:.0f} % of the prompts came from the prefix cache: real traffic may be slower"


def _grown(before: float | None, after: float | None) -> float | None:
    """How far a counter went; None where it is not told, or began anew."""
    return None if before is None or after is None or after < before else after - before
