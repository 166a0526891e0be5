"""A question saved as a target: what the page offers, and what came of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import label_for_field
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from sizing.admin.target.question import Params, asked, no_tokens, query_of
from sizing.models import ServedModel, Target
from sizing.models.fields import MILLIONTH
from sizing.models.locking import inventory_lock
from sizing.services.editing import save_target
from sizing.services.errors import DeskError
from sizing.services.targets import Question, parse_question
from sizing.templatetags.desk import num

BEFORE = "before"
"""What the form carries of the saved target that it offers to change."""

_DIGITS = 80
"""More than a number that may be asked has."""


@dataclass(frozen=True)
class Saving:
    """The offer to save a question. saved: the target that asks the same of the same already, if any;
    same: whether it wishes exactly this. wished, wished_before: in words. fields: what the form carries."""

    saved: Target | None
    same: bool
    may_view: bool
    wished: str
    wished_before: str
    fields: list[tuple[str, str]]


def saving_part(
    model_admin: Any,
    request: HttpRequest,
    model: ServedModel,
    params: Params,
    question: Question,
    error: DeskError | None,
) -> dict[str, Any]:
    """The offer to save the question, for those who may; also where nothing is measured yet."""
    if error is not None and error.code != "not_measured":
        return {}
    target_admin = model_admin.admin_site.get_model_admin(Target)
    may_view = target_admin.has_view_permission(request)
    may_add, may_change = (
        target_admin.has_add_permission(request),
        target_admin.has_change_permission(request),
    )
    if not (may_view or may_add or may_change):
        return {}
    saved = saved_for(model, question)
    wished, before = wish(question), wish_of(saved) if saved else None
    same = before == wished
    if not same and not (may_change if saved else may_add):
        return {}
    fields = [(name, value) for name, values in params.items() for value in values]
    fields.append((BEFORE, _plainly(before)))
    said = (wished.beside(before), before.beside(wished)) if before else (str(wished), "")
    return {"saving": Saving(saved, same, may_view, *said, fields)}


def saved_for(model: ServedModel, question: Question) -> Target | None:
    """The target of this model, variant and profile, whether the model's own profile is named or not."""
    variant = {"variant__name": question.variant} if question.variant else {"variant": None}
    default = model.default_profile.name if model.default_profile else None
    same = {question.profile, None, default} if question.profile in (None, default) else {question.profile}
    rows = Target.objects.filter(model=model, **variant).select_related("model", "profile")
    by_profile = {row.profile.name if row.profile else None: row for row in rows}
    # Of two that mean the same, the one in the same words.
    return next((by_profile[name] for name in (question.profile, *same) if name in by_profile), None)


@dataclass(frozen=True)
class Wish:
    """What a target wishes, beside what it is about."""

    tokens_per_sec: Decimal
    utilization: Decimal

    def __str__(self) -> str:
        said = num(self.tokens_per_sec, "tok/s")
        return said if self.utilization == 1 else f"{said} at a utilization of {num(self.utilization)}"

    def beside(self, other: Wish) -> str:
        """This in words, with the utilization also where only that of the other one is no whole."""
        told = self.utilization == 1 != other.utilization
        return f"{self} at a utilization of 1" if told else str(self)


def wish(question: Question) -> Wish:
    """What a question wishes, with the six places that a saved one keeps."""
    return Wish(*(kept(value) for value in (question.tokens_per_sec, question.utilization)))


def wish_of(target: Target) -> Wish:
    """The same of a saved one."""
    return Wish(target.tokens_per_sec, target.utilization)


def kept(value: Decimal) -> Decimal:
    """A decimal as it is stored: with six places, rounded half-even."""
    with localcontext(prec=_DIGITS):
        return value.quantize(MILLIONTH, ROUND_HALF_EVEN)


def rounded(question: Question) -> list[str]:
    """What is not stored just as it was asked, a sentence each."""
    given = asdict(Wish(question.tokens_per_sec, question.utilization))
    stored = asdict(wish(question))
    return [
        f"Kept with six places: {name} {value} as {stored[name].normalize():f}."
        for name, value in given.items()
        if stored[name] != value
    ]


def save(model_admin: Any, request: HttpRequest, model: ServedModel) -> HttpResponse:
    """Save what was asked as a target, or change the one that there is, and say so on the page."""
    target_admin = model_admin.admin_site.get_model_admin(Target)
    params = asked(request.POST)
    back = f"{reverse('admin:sizing_servedmodel_target', args=[model.pk])}?{query_of(params)}"
    try:
        question = parse_question(model.name, params)
        if told := no_tokens(model):
            raise DeskError(told)
        with inventory_lock():
            saved = saved_for(model, question)
            may = target_admin.has_add_permission if saved is None else target_admin.has_change_permission
            if not may(request):
                raise PermissionDenied
            _check_before(request, question, saved)
            said = saved_as(target_admin, request, question, saved)
    except DeskError as error:
        model_admin.message_user(request, f"Not saved: {error.message.rstrip('.')}.", messages.ERROR)
        return HttpResponseRedirect(back)
    model_admin.message_user(request, said, messages.SUCCESS)
    for warning in rounded(question):
        model_admin.message_user(request, warning, messages.WARNING)
    return HttpResponseRedirect(back)


def _check_before(request: HttpRequest, question: Question, saved: Target | None) -> None:
    """Refuse to change a target that was saved or changed since the page offered it; not where it is what
    is wished already."""
    now = wish_of(saved) if saved else None
    if request.POST.get(BEFORE, _plainly(now)) != _plainly(now) and now != wish(question):
        raise DeskError(f"the target was changed meanwhile: it asks {now or 'nothing any more'}; look again")


def _plainly(wished: Wish | None) -> str:
    return f"{wished.tokens_per_sec} {wished.utilization}" if wished else ""


def saved_as(target_admin: Any, request: HttpRequest, question: Question, saved: Target | None) -> str:
    """Write the target, `saved` where it was found before; what was done, in a sentence."""
    wished = wish(question)
    if not wished.tokens_per_sec:
        raise DeskError("tokens_per_sec must be at least 0.000001 to be saved")
    if saved is not None and wish_of(saved) == wished:
        return f"This is saved as a target already: {_said(saved)}."
    profile = question.profile if saved is None else saved.profile and saved.profile.name
    given = {"model": question.model, "profile": profile, "variant": question.variant}
    try:
        pk = save_target(given | asdict(wished), saved.pk if saved else None)
    except DeskError:
        # Somebody else may have saved the same just now.
        model = ServedModel.objects.filter(name=question.model).first()
        now = saved_for(model, question) if model and saved is None else None
        if now is None or wish_of(now) != wished:
            raise
        return f"This is saved as a target already: {_said(now)}."
    target = Target.objects.select_related("model").get(pk=pk)
    about = " What was supposed is no part of it." if question.as_if else ""
    if saved is None:
        target_admin.log_addition(request, target, [{"added": {}}])
        return f"Saved as a target: {_said(target)}. The board shows from now on whether it is met.{about}"
    before, after = wish_of(saved), wish_of(target)
    old, new = asdict(before), asdict(after)
    fields = [label_for_field(name, Target) for name in new if old[name] != new[name]]
    target_admin.log_change(request, target, [{"changed": {"fields": fields}}])
    changed = f"{target.model.name}: {after.beside(before)}, before {before.beside(after)}"
    return f"The target is changed: {changed}.{about}"


def _said(target: Target) -> str:
    return f"{target.model.name}: {wish_of(target)}"
