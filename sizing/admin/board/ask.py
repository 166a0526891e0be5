"""The question in reach: a model and tokens per second, from the board to the Target page."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from sizing.admin.target.question import NO_TOKENS
from sizing.domain.wording import names
from sizing.models import ServedModel

MODELS_OFFERED = 200
MODELS_LINKED = 12
NAME, RATE = "ask_model", "ask_rate"
"""The parameters by which the board's form keeps what was typed."""


def may_ask(request: HttpRequest) -> bool:
    """Whether the caller may ask what a model takes: as with the Target page."""
    return any(request.user.has_perm(f"sizing.{verb}_servedmodel") for verb in ("view", "change"))


def ask_part(request: HttpRequest) -> dict[str, Any]:
    """The context of the question's form: what may be asked for."""
    if not may_ask(request):
        return {"ask_allowed": False}
    models = list(
        ServedModel.objects.filter(workload=ServedModel.Workload.MODEL)
        .order_by("name")
        .values_list("pk", "name")[: MODELS_OFFERED + 1]
    )
    return {
        "ask_allowed": True,
        "ask_name": request.GET.get(NAME, ""),
        "ask_rate": request.GET.get(RATE, ""),
        "ask_models": models[:MODELS_OFFERED],
        "ask_linked": models[:MODELS_LINKED],
        "ask_more": len(models) > MODELS_LINKED,
        "ask_may_add": request.user.has_perm("sizing.add_servedmodel"),
    }


def ask_view(request: HttpRequest) -> HttpResponse:
    """Lead to the Target page of the model whose name, or the only one of which a part, is given."""
    if not may_ask(request):
        raise PermissionDenied
    name = request.GET.get("model", "").strip()
    rate = request.GET.get("tokens_per_sec", "").strip()
    model = _model(name)
    if isinstance(model, ServedModel):
        url = reverse("admin:sizing_servedmodel_target", args=[model.pk])
        return HttpResponseRedirect(f"{url}?{urlencode({'tokens_per_sec': rate})}" if rate else url)
    messages.warning(request, model)
    typed = {key: value for key, value in ((NAME, name), (RATE, rate)) if value}
    return HttpResponseRedirect(reverse("admin:index") + (f"?{urlencode(typed)}" if typed else ""))


def _model(name: str) -> ServedModel | str:
    """The model that is meant, or what keeps from telling."""
    if not name:
        return "Name the model that you ask about."
    models = ServedModel.objects.filter(workload=ServedModel.Workload.MODEL)
    if exact := models.filter(name=name).first():
        return exact
    found = list(models.filter(name__icontains=name).order_by("name")[: MODELS_OFFERED + 1])
    if len(found) == 1:
        return found[0]
    if not found and ServedModel.objects.filter(name=name).exists():
        return f"{NO_TOKENS.format(name)}."
    if not found:
        return f'No model is called "{name}". Pick one of the list under the field.'
    return f'"{name}" may be {names([model.name for model in found])}: name one of them.'
