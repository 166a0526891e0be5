"""A question saved as a target: what the page offers, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import label_for_field
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from sizing.admin.target.question import Params, asked, query_of
from sizing.models import ServedModel, Target
from sizing.services.editing import save_target
from sizing.services.errors import DeskError
from sizing.services.targets import Question, parse_question
from sizing.templatetags.desk import num


@dataclass(frozen=True)
class Saving:
    """The offer to save a question. saved: the target that asks the same of the same already, if any;
    same: whether it wishes exactly this. fields: what the form carries."""

    saved: Target | None
    same: bool
    may_view: bool
    wished: str
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
    same = saved is not None and wish_of(saved) == wish(question)
    if not same and not (may_change if saved else may_add):
        return {}
    fields = [(name, value) for name, values in params.items() for value in values]
    return {"saving": Saving(saved, same, may_view, num(question.tokens_per_sec, "tok/s"), fields)}


def saved_for(model: ServedModel, question: Question) -> Target | None:
    """The target with this question's model, profile and variant: there is at most one."""
    of_model = Target.objects.filter(model=model).select_related("model")
    for name in ("profile", "variant"):
        value = getattr(question, name)
        of_model = of_model.filter(**({f"{name}__name": value} if value else {name: None}))
    return of_model.first()


def wish(question: Question) -> dict[str, Any]:
    """What a target wishes, beside what it is about."""
    return {"tokens_per_sec": question.tokens_per_sec, "utilization": question.utilization}


def wish_of(target: Target) -> dict[str, Any]:
    """The same of a saved one."""
    return {"tokens_per_sec": target.tokens_per_sec, "utilization": target.utilization}


def save(model_admin: Any, request: HttpRequest, model: ServedModel) -> HttpResponse:
    """Save what was asked as a target, or change the one that there is, and say so on the page."""
    target_admin = model_admin.admin_site.get_model_admin(Target)
    params = asked(request.POST)
    back = f"{reverse('admin:sizing_servedmodel_target', args=[model.pk])}?{query_of(params)}"
    try:
        question = parse_question(model.name, params)
        saved = saved_for(model, question)
        may = target_admin.has_add_permission if saved is None else target_admin.has_change_permission
        if not may(request):
            raise PermissionDenied
        said = _saved(target_admin, request, question, saved)
    except DeskError as error:
        model_admin.message_user(request, f"Not saved: {error.message}.", messages.ERROR)
        return HttpResponseRedirect(back)
    model_admin.message_user(request, said, messages.SUCCESS)
    return HttpResponseRedirect(back)


def _saved(target_admin: Any, request: HttpRequest, question: Question, saved: Target | None) -> str:
    """Write the target; what was done, in a sentence."""
    if saved is not None and wish_of(saved) == wish(question):
        return f"This is saved as a target already: {saved}."
    given = {"model": question.model, "profile": question.profile, "variant": question.variant}
    pk = save_target(given | wish(question), saved.pk if saved else None)
    target = Target.objects.select_related("model").get(pk=pk)
    about = " What was supposed is no part of it." if question.as_if else ""
    if saved is None:
        target_admin.log_addition(request, target, [{"added": {}}])
        return f"Saved as a target: {target}. The board shows from now on whether it is met.{about}"
    before, after = wish_of(saved), wish_of(target)
    fields = [label_for_field(name, Target) for name in after if before[name] != after[name]]
    target_admin.log_change(request, target, [{"changed": {"fields": fields}}])
    return f"The target is changed: {target}, before {num(saved.tokens_per_sec, 'tok/s')}.{about}"
