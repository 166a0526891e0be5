"""How a saved target stands, in words: for the board and for the list of targets."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_DOWN, Decimal, localcontext
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from sizing.admin.measured.words import BOUNDS
from sizing.admin.words import Verdict
from sizing.domain.blocked import headline
from sizing.domain.wording import names
from sizing.models import Refresh, Target
from sizing.models.fields import MILLIONTH
from sizing.services.wishes import Kind, Standing
from sizing.templatetags.desk import age, num

SIGNS = {Kind.BLOCKED: "✕", Kind.PREEMPTS: "▲", Kind.UNMEASURED: "–", Kind.FITS: "✓", Kind.SERVED: "✓"}
_DIGITS = 60
"""More than a rate has: of up to 10^24 replicas, with six places."""
_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True, slots=True)
class Row:
    """A target as a line of a table shows it; without an answer the figures are None."""

    pk: int
    model: str
    url: str
    of: str
    asked: Decimal
    needed: int | None
    current: int | None
    more: int | None
    surplus: int | None
    verdict: Verdict
    why: str
    holds: str
    age: str
    bound: str
    bound_words: str
    stale: str
    warnings: int
    refresh: Refresh | None


def may_see_answers(request: HttpRequest) -> bool:
    """Whether this person may ask what a model would take."""
    return any(request.user.has_perm(f"sizing.{verb}_servedmodel") for verb in ("view", "change"))


def question_of(target: Target) -> str:
    """The target's question as the Target page's query string."""
    question = {"tokens_per_sec": f"{target.tokens_per_sec.normalize():f}"}
    if target.profile:
        question["profile"] = target.profile.name
    if target.variant:
        question["variant"] = target.variant.name
    if target.utilization != 1:
        question["utilization"] = f"{target.utilization.normalize():f}"
    return urlencode(question)


def row_of(standing: Standing, now: datetime, refresh: Refresh | None = None) -> Row:
    """What a table shows of a target at a moment."""
    target, found = standing.target, standing.answer
    counted = found.count if found else None
    measured = counted.measurement if counted else None
    url = reverse("admin:sizing_servedmodel_target", args=[target.model_id])
    return Row(
        pk=target.pk,
        model=target.model.name,
        url=f"{url}?{question_of(target)}",
        of=_of(standing),
        asked=target.tokens_per_sec,
        needed=counted.needed if counted else None,
        current=counted.current if counted else None,
        more=counted.more if counted else None,
        surplus=counted.surplus if counted else None,
        verdict=verdict(standing),
        why=why(standing),
        holds=holds(standing),
        age=age(found.age_s(now)) if found else "",
        bound=(measured.bound or "") if measured else "",
        bound_words=BOUNDS.get(measured.bound, "") if measured else "",
        stale=(found.stale(now) or "") if found else "",
        warnings=len(found.warnings(now)) if found else 0,
        refresh=refresh,
    )


def _of(standing: Standing) -> str:
    """`h100-tp4 · chat`, with the share of the measured throughput where that is not all of it."""
    target = standing.target
    parts = [standing.variant or "no variant measured", standing.profile or "no profile"]
    if target.utilization != 1:
        parts.append(f"{num(target.utilization * 100, '%')} utilization")
    return " · ".join(parts)


def verdict(standing: Standing) -> Verdict:
    """How the answer ends, in a word and a sign."""
    kind = standing.kind
    return Verdict(kind.value, SIGNS[kind], _ending(standing, kind))


def _ending(standing: Standing, kind: Kind) -> str:
    if standing.answer is None:
        measured = standing.refusal is None or standing.refusal.code != "not_measured"
        return "no answer" if measured else "not measured"
    if kind is Kind.PREEMPTS:
        victims = standing.victims
        return f"fits by stopping {'others' if victims is None else num(len(victims))}"
    return {Kind.BLOCKED: "does not fit", Kind.FITS: "fits"}.get(kind, "served")


def why(standing: Standing) -> str:
    """What is in the way, who would stop, or why there is no answer; empty where all is well."""
    found = standing.answer
    if found is None:
        return standing.refusal.message if standing.refusal else ""
    if standing.kind is Kind.BLOCKED:
        return headline(found.count)
    if standing.kind is Kind.PREEMPTS:
        if standing.victims is None:
            return "its page tells who would stop"
        stopped = Counter(victim.model for victim in standing.victims)
        return f"stops {names([f'{num(count)} of {model}' for model, count in sorted(stopped.items())])}"
    return ""


def holds(standing: Standing) -> str:
    """`three replicas hold to 3,541.5 tok/s; you ask 3,500, 98.8 %`; empty without an answer.

    What they hold has all its places, so that it is never less than what is asked.
    """
    far = standing.distance
    if far is None or standing.answer is None:
        return ""
    counted = standing.answer.count
    who = f"{_number(far.needed)} replica{'s' * (far.needed != 1)}"
    if counted.others:
        who += f", {_not_of_variant(len(counted.others), far.needed)} {counted.variant.name},"
    hold = "holds" if far.needed == 1 else "hold"
    least = "at least" if counted.measurement.bound == "floor" else "to"
    asked = num(standing.target.tokens_per_sec)
    return f"{who} {hold} {least} {down(far.holds)} tok/s; you ask {asked}, {num(far.percent, '%')}"


def _not_of_variant(others: int, of: int) -> str:
    if others == of:
        return "not" if of == 1 else "none of them"
    return f"{_number(others)} of them not"


def _number(count: int) -> str:
    return _COUNTS[count] if count < len(_COUNTS) else num(count)


def down(value: Decimal) -> str:
    """A rate with all its places, rounded down to the six that a wish may have: `3,541.5`."""
    with localcontext(prec=_DIGITS):
        return num(value.quantize(MILLIONTH, ROUND_DOWN))
