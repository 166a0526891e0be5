"""The target question: from parameters to an answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils import timezone

from sizing import snapshot
from sizing.domain.answer import Answer
from sizing.domain.catalog import Question as DomainQuestion
from sizing.domain.catalog import QuestionError
from sizing.domain.demand import parse_rate, parse_utilization
from sizing.services.answers import Asker, note
from sizing.services.errors import DeskError
from sizing.snapshot import Snapshot

PARAMETERS = ("tokens_per_sec", "profile", "variant", "utilization", "as_if", "explain")
_STATUS = {"not_found": 404}


@dataclass(frozen=True)
class Question(DomainQuestion):
    """A question as people ask it: `explain_nodes` asks for an entry for every node."""

    explain_nodes: bool = False


@dataclass(frozen=True)
class Offered:
    """What a question about a model may name. measured: the profiles on which a figure counts."""

    default_profile: str | None
    profiles: tuple[str, ...]
    measured: frozenset[str]
    variants: tuple[str, ...]


def offered(model: str) -> Offered:
    """The profiles and the model's variants; none of these where there is no such model."""
    catalog = snapshot.current().catalog
    known = catalog.models.get(model)
    return Offered(
        known.default_profile if known else None,
        tuple(sorted(catalog.profiles)),
        frozenset(profile for name, _, profile in catalog.measured if name == model),
        tuple(variant.name for variant in known.variants) if known else (),
    )


def node_ids(names: Collection[str]) -> dict[str, int]:
    """The ids of nodes, by name, as far as there are such nodes."""
    known = snapshot.current().node_ids
    return {name: known[name] for name in names if name in known}


def known_model(name: str) -> None:
    """DeskError 404 where there is no such model."""
    if name not in snapshot.current().catalog.models:
        raise DeskError(f'no model "{name}"', code="not_found", status=404)


def parse_question(model: str, params: Mapping[str, Sequence[str]]) -> Question:
    """Read a question from parameters, each a list of the values given.

    DeskError 404 where there is no such model, then 400 with the one thing that is wrong.
    """
    known_model(model)
    unknown = sorted(set(params) - set(PARAMETERS))
    if unknown:
        raise DeskError(f'unknown parameter "{unknown[0]}"; there are {", ".join(PARAMETERS)}')
    rate = parse_rate(_single(params, "tokens_per_sec") or "")
    if rate is None:
        raise DeskError("tokens_per_sec must be a positive number")
    share_text = _single(params, "utilization")
    share = Decimal(1) if share_text is None else parse_utilization(share_text)
    if share is None:
        raise DeskError("utilization must be a number in (0, 1], at least 0.000001")
    explain = _single(params, "explain")
    if explain not in (None, "nodes"):
        raise DeskError("explain takes only the word nodes")
    return Question(
        model=model,
        tokens_per_sec=rate,
        profile=_single(params, "profile"),
        variant=_single(params, "variant"),
        utilization=share,
        as_if=tuple(params.get("as_if", ())),
        explain_nodes=explain == "nodes",
    )


def _single(params: Mapping[str, Sequence[str]], name: str) -> str | None:
    values = params.get(name, [])
    if len(values) > 1:
        if name == "tokens_per_sec":
            raise DeskError("tokens_per_sec must be a positive number")
        raise DeskError(f"{name} is given twice")
    return values[0] if values else None


def find(question: Question) -> tuple[Answer, Snapshot]:
    """The answer as a domain value, and the snapshot that it rests on; DeskError where there is none."""
    plain = DomainQuestion(
        question.model,
        question.tokens_per_sec,
        question.profile,
        question.variant,
        question.utilization,
        question.as_if,
    )
    current = snapshot.current()
    try:
        return current.answer(plain), current
    except QuestionError as refused:
        status = _STATUS.get(refused.code, 400)
        raise DeskError(refused.message, code=refused.code, status=status) from refused


def find_answer(question: Question) -> Answer:
    """The answer as a domain value; DeskError where there is none."""
    return find(question)[0]


def ask(question: Question, asker: Asker | None = None) -> dict[str, Any]:
    """The answer in its public form, with the id that it is kept by for who asks; DeskError where there is
    none."""
    answer, current = find(question)
    now = timezone.now()
    form = answer.as_dict(now, explain_nodes=question.explain_nodes)
    if asker is not None and (kept := note(answer, current, asker, now)):
        form["answer_id"] = str(kept)
    return form
