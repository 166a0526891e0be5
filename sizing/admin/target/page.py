"""The Target page: one question about one model, by GET, so that an answer can be linked to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from sizing import snapshot
from sizing.admin.measured import asking
from sizing.admin.target.answered import answer_part
from sizing.admin.target.question import Params, asked, form_part, no_tokens
from sizing.admin.target.saving import save, saving_part
from sizing.admin.target.sheet import node_sheet
from sizing.admin.target.supposed import banner
from sizing.domain.answer import Answer
from sizing.models import Answer as KeptAnswer
from sizing.models import Measurement, ServedModel
from sizing.services.answers import Asker, note
from sizing.services.errors import DeskError
from sizing.services.targets import Question, find_answer, parse_question

TYPING = "X-Typing"
"""A header of what `target.js` asks while the question is still being typed."""


@dataclass(frozen=True)
class Outcome:
    """What came of asking: the question as far as it could be read, and its answer or why there is none."""

    question: Question | None = None
    answer: Answer | None = None
    error: DeskError | None = None


def target_view(model_admin: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    """Ask what a model would take; by POST save the question as a target.

    Needs the permission to view models. `format=csv` gives the nodes of the answer as a table.
    """
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    if request.method not in ("GET", "HEAD", "POST"):
        return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
    model: ServedModel | None = model_admin.get_object(request, object_id)
    if model is None:
        return model_admin._get_obj_does_not_exist_redirect(  # type: ignore[no-any-return]
            request, model_admin.opts, object_id
        )
    if request.method == "POST":
        return save(model_admin, request, model)
    with snapshot.pinned():
        return asked_page(model_admin, request, model)


def asked_page(model_admin: Any, request: HttpRequest, model: ServedModel) -> HttpResponse:
    """The page with what was asked and its answer, or the answer as a table."""
    params = asked(request.GET)
    outcome = answer_of(model, params) if params else Outcome()
    if outcome.answer is not None and request.GET.get("format") == "csv":
        return node_sheet(outcome.answer)
    kept = kept_part(request, outcome.answer) if outcome.answer is not None else {}
    return TemplateResponse(
        request,
        "admin/sizing/servedmodel/target.html",
        {
            **model_admin.admin_site.each_context(request),
            "title": f"What would {model.name} take?",
            "subtitle": None,
            "opts": model_admin.opts,
            "original": model,
            **form_part(model.name, params),
            **outcome_part(model_admin, request, model, params, outcome),
            **kept,
        },
    )


def kept_part(request: HttpRequest, answer: Answer) -> dict[str, Any]:
    """Have the answer kept, and where it is to be seen. What is asked while one types is no question yet."""
    if request.headers.get(TYPING):
        return {}
    asker = Asker(KeptAnswer.Channel.PAGE, request.user)
    pk = note(answer, snapshot.current(), asker, timezone.now())
    may_look = pk is not None and request.user.has_perm("sizing.view_answer")
    return {"kept_url": reverse("admin:sizing_answer_change", args=[pk])} if may_look else {}


def answer_of(model: ServedModel, params: Params) -> Outcome:
    """Ask the question that the page's address holds."""
    question = None
    try:
        question = parse_question(model.name, params)
        return Outcome(question, find_answer(question))
    except DeskError as error:
        if error.code == "not_measured" and (told := no_tokens(model)):
            error = DeskError(told)
        return Outcome(question, error=error)


def outcome_part(
    model_admin: Any, request: HttpRequest, model: ServedModel, params: Params, outcome: Outcome
) -> dict[str, Any]:
    """The part of the page that changes with the question."""
    part: dict[str, Any] = {"banner": banner(outcome.question, params), "error": outcome.error}
    if outcome.question is not None:
        part |= saving_part(model_admin, request, model, params, outcome.question, outcome.error)
    if outcome.answer is not None:
        return part | answer_part(model_admin, request, model, params, outcome.answer)
    if outcome.error is not None:
        return part | next_steps(model_admin, request, model, params, outcome.error)
    return part


def next_steps(
    model_admin: Any, request: HttpRequest, model: ServedModel, params: Params, error: DeskError
) -> dict[str, Any]:
    """What to do about an error."""
    if error.code != "not_measured":
        return {}
    measurement_admin = model_admin.admin_site.get_model_admin(Measurement)
    variant, profile = (params.get(name, [None])[-1] for name in ("variant", "profile"))
    return {
        "not_measured": True,
        "offer": asking.offer(request, model, variant, profile),
        "may_add_measurement": measurement_admin.has_add_permission(request),
        "first_variant": model.variants.order_by("position", "id").first(),
    }
