"""The row of the sync, as tests wait for it."""

from __future__ import annotations

from typing import Any

from sizing.models import ClusterSync


def row() -> Any:
    return ClusterSync.objects.get_or_create(pk=1)[0]


def failed_with(words: str) -> bool:
    found = row()
    return found.state == "failing" and words in found.error


def works_again() -> bool:
    now = row()
    return (now.state, now.failures, now.error, now.error_in) == (
        "watching",
        0,
        "",
        "",
    ) and not now.failing_since
