"""The sentence and the verdict of an answer, also of one that preempts."""

from __future__ import annotations

from typing import Any

import pytest

from sizing.admin.words import sentence, verdict


def answer(needed: int, current: int, room: int, stopped: list[str] | None = None) -> dict[str, Any]:
    more = max(needed - current, 0)
    found: dict[str, Any] = {
        "needed": needed,
        "current": current,
        "more": more,
        "surplus": max(current - needed, 0),
        "room": room,
        "free_room": room - len(stopped or []),
        "fits": more <= room,
    }
    if stopped:
        found["preemption"] = {"victims": [{"model": name} for name in stopped]}
    return found


@pytest.mark.parametrize(
    ("given", "said", "kind", "badge"),
    [
        (answer(5, 5, 0), "5 replicas are needed, 5 run: already served.", "served", "already served"),
        (answer(1, 0, 1), "1 replica is needed, none runs; it fits.", "fits", "fits"),
        (answer(2, 1, 1), "2 replicas are needed, 1 runs; the other 1 fits.", "fits", "fits"),
        (
            answer(5, 2, 1),
            "5 replicas are needed, 2 run; of the other 3 only 1 fits.",
            "blocked",
            "does not fit",
        ),
        (
            answer(5, 2, 0),
            "5 replicas are needed, 2 run; of the other 3 none fits.",
            "blocked",
            "does not fit",
        ),
        (answer(1, 0, 0), "1 replica is needed, none runs; it does not fit.", "blocked", "does not fit"),
        (answer(3, 0, 0), "3 replicas are needed, none runs; of the 3 none fits.", "blocked", "does not fit"),
        (
            answer(5, 2, 3, ["batch", "batch"]),
            "5 replicas are needed, 2 run; the other 3 fit by stopping 2 replicas of batch.",
            "preempts",
            "fits by stopping 2",
        ),
        (
            answer(6, 2, 3, ["batch"]),
            "6 replicas are needed, 2 run; of the other 4 only 3 fit by stopping 1 replica of batch.",
            "blocked",
            "does not fit",
        ),
    ],
)
def test_the_answer_in_words(given: dict[str, Any], said: str, kind: str, badge: str) -> None:
    assert str(sentence(given)) == said
    assert (verdict(given).kind, verdict(given).text) == (kind, badge)
