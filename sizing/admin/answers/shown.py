"""What the pages of kept answers say."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sizing.admin import words
from sizing.admin.target.question import AS_IF, query_of
from sizing.domain.supposing import in_words
from sizing.domain.wording import names
from sizing.models import Answer
from sizing.services.answers import Difference, Replay
from sizing.templatetags.desk import num

CHANNELS = {
    Answer.Channel.PAGE: "on a page",
    Answer.Channel.API: "by the API",
    Answer.Channel.COMMAND: "by a command",
}
_MOST_SHOWN = 300
_FIGURES = ("needed", "current", "more", "surplus", "room", "free_room")


def question(row: Answer) -> str:
    """The question in words: `5,000 tok/s of llama on chat, by tp4, at a utilization of 0.8, as if …`."""
    text = f"{number(row.tokens_per_sec)} tok/s of {row.model}"
    if row.profile:
        text += f" on {row.profile}"
    if row.variant:
        text += f", by {row.variant}"
    if row.utilization != "1":
        text += f", at a utilization of {number(row.utilization)}"
    if row.as_if:
        text += f", as if {names([in_words(one) or one for one in row.as_if])}"
    return text


def number(text: str) -> str:
    """A number as pages write it; as it was asked where it has more digits than one reads."""
    value = Decimal(text)
    return num(value) if -12 <= value.adjusted() <= 15 and len(value.as_tuple().digits) <= 16 else text


def asked(row: Answer) -> str:
    """Who asked, and by which way."""
    where = CHANNELS[Answer.Channel(row.channel)]
    return f"by {row.asked_by_name}, {where}" if row.asked_by_name else where


def counts(row: Answer) -> dict[str, Any]:
    """Of a row of a list what its sentence and its verdict need."""
    return {name: getattr(row, name) for name in _FIGURES} | {"fits": row.fits}


def query(row: Answer) -> str:
    """The query string that asks the same of the target page."""
    params = {"tokens_per_sec": [row.tokens_per_sec]}
    for name in ("profile", "variant"):
        if value := getattr(row, name):
            params[name] = [value]
    if row.utilization != "1":
        params["utilization"] = [row.utilization]
    if row.as_if:
        params[AS_IF] = row.as_if
    return query_of(params)


@dataclass(frozen=True)
class Differing:
    """A line of what differs, as text."""

    path: str
    before: str
    now: str


def differing(difference: Difference) -> Differing:
    """A difference to be shown."""
    return Differing(difference.path, _short(difference.before), _short(difference.now))


def _short(value: Any) -> str:
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def outcome(replay: Replay) -> str:
    """What came of computing an answer again, in a sentence."""
    if replay.error:
        return f"Today this has no answer: {replay.error}"
    if replay.same:
        return "Computed again on the inventory of then, it is the same answer."
    now = words.sentence(replay.result or {})
    return f"Computed again on the inventory of then, it is another answer today: {now}"
