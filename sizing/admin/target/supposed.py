"""What a question supposes, and the links that suppose something more or take something back."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sizing.admin import words
from sizing.admin.target.question import AS_IF, Params, query_of
from sizing.domain.answer import Answer
from sizing.domain.changes import Change
from sizing.domain.supposing import in_words, supposed_too
from sizing.domain.wording import names
from sizing.services.errors import DeskError
from sizing.services.targets import Question, find_answer
from sizing.templatetags.desk import num


@dataclass(frozen=True)
class Supposition:
    """One supposition of the question, and the address of the question without it."""

    text: str
    without: str


@dataclass(frozen=True)
class Banner:
    """That the answer supposes something: what, what is true instead, and the way back."""

    sentence: str
    parts: list[Supposition]
    back: str
    as_it_is: str


def banner(question: Question | None, params: Params) -> Banner | None:
    """The banner of a question that supposes something; question: None where it could not be read."""
    supposed = params.get(AS_IF)
    if not supposed:
        return None
    return Banner(
        sentence=f"As if {names([_said(text) for text in supposed])}.",
        parts=[
            Supposition(_said(text), query_of(params, as_if=[*supposed[:at], *supposed[at + 1 :]]))
            for at, text in enumerate(supposed)
        ],
        back=query_of(params, as_if=[]),
        as_it_is=_as_it_is(question) if question else "",
    )


def _said(text: str) -> str:
    return in_words(text) or '""'


def _as_it_is(question: Question) -> str:
    """The answer without any supposition, in a sentence."""
    try:
        found = find_answer(replace(question, as_if=()))
    except DeskError as error:
        return error.message
    return str(words.sentence(words.counts(found)))


@dataclass(frozen=True)
class Step:
    """A change that would help: what, how many more replicas it gives, and the address of the question
    with it."""

    text: str
    gain: str
    note: str
    query: str


def steps(answer: Answer, params: Params) -> list[Step]:
    """What draining replicas will give and the smallest changes that would help, as links that ask again
    with that."""
    awaited = answer.awaited
    changes = [awaited, *answer.changes] if awaited and awaited.as_if else answer.changes
    return [
        Step(change.text, num(change.gain), change.note, _asked_with(change, params)) for change in changes
    ]


def _asked_with(change: Change, params: Params) -> str:
    if change.variant:
        return query_of(params, variant=[change.variant])
    return query_of(params, as_if=supposed_too(tuple(params.get(AS_IF, ())), change.as_if))
