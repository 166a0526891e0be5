"""What a node takes of the models there are, and what it refuses and why: a part of its page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from sizing.admin.words import node_reason, number_name
from sizing.domain.fleet import Fleet
from sizing.domain.specs import ModelSpec
from sizing.domain.taking import OneNode, Taking
from sizing.models import ServedModel
from sizing.templatetags.desk import num

VARIANTS_SHOWN = 60
CHOICES_SHOWN = 500

MENDED = {
    "node_not_ready": "if it were open",
    "node_cordoned": "if it were open",
    "node_stale": "if it were open",
    "gpu_unhealthy": "if all its GPUs were healthy",
    "used_outside": "if nothing ran outside of replicas",
}
PREEMPTION = {
    "no_lower_priority": "what holds it has no lower priority",
    "protected_by_minimum": "minima of other models protect what holds it",
    "preemption_never": "the model does not preempt: its policy is Never",
}


@dataclass(frozen=True, slots=True)
class TakingRow:
    """A variant on this node: what it takes, why not more, what would mend that, who would have to stop."""

    taking: Taking
    model_url: str
    reason: str
    numbers: list[tuple[str, int | None]]
    otherwise: str
    preemption: str


def takes_part(request: HttpRequest, fleet: Fleet, number: int) -> dict[str, Any]:
    """What the node takes of the model that `model` and `variant` name; of all where they are few, those
    that are nearest to fitting first."""
    if not may_view(request, "servedmodel"):
        return {"may_ask": False}
    asked = request.GET.get("model", "")
    model = fleet.models.get(asked)
    variant = request.GET.get("variant", "")
    pairs = [(one, way) for one in _models(fleet, model) for way in one.variants]
    if model is not None and any(way.name == variant for way in model.variants):
        pairs = [(one, way) for one, way in pairs if way.name == variant]
    else:
        variant = ""
    too_many = model is None and len(pairs) > VARIANTS_SHOWN
    node = OneNode(fleet, number)
    shown = [] if too_many else [node.taking(one, way) for one, way in pairs[:VARIANTS_SHOWN]]
    if model is None:
        shown.sort(key=lambda taking: (-taking.rung, taking.model.name))
    names = sorted(fleet.models)[:CHOICES_SHOWN]
    keys = dict(
        ServedModel.objects.filter(name__in={one.model.name for one in shown}).values_list("name", "pk")
    )
    return {
        "may_ask": True,
        "models": names if model is None or asked in names else [*names, asked],
        "model_asked": asked,
        "unknown_model": asked if asked and model is None else "",
        "variants": [way.name for way in model.variants] if model is not None else [],
        "variant_asked": variant,
        "too_many": too_many,
        "takes": [taking_row(node, one, keys.get(one.model.name), chosen=model is not None) for one in shown],
        "more_takes": 0 if too_many else max(len(pairs) - VARIANTS_SHOWN, 0),
    }


def _models(fleet: Fleet, chosen: ModelSpec | None) -> list[ModelSpec]:
    return [chosen] if chosen is not None else [fleet.models[name] for name in sorted(fleet.models)]


def taking_row(node: OneNode, taking: Taking, key: int | None, chosen: bool) -> TakingRow:
    """A variant in words; who would have to stop is asked for the chosen model only, for it takes longer."""
    share = "share" if taking.variant.nodes > 1 else "replica"
    otherwise = ""
    if taking.mended:
        plural = "" if taking.mended == 1 else "s"
        otherwise = f"would take {num(taking.mended)} {share}{plural} {MENDED[taking.code]}"
    return TakingRow(
        taking=taking,
        model_url=reverse("admin:sizing_servedmodel_target", args=[key]) if key else "",
        reason=taking.say or node_reason(taking.code),
        numbers=[(number_name(name), value) for name, value in taking.numbers.items()],
        otherwise=otherwise,
        preemption=preemption_words(node, taking) if chosen else "",
    )


def preemption_words(node: OneNode, taking: Taking) -> str:
    """What stopping others on this node gives; empty where no rule of preemption matters."""
    gives = node.preemption(taking.model, taking.variant)
    if gives is None:
        return ""
    if isinstance(gives, str):
        return f"stopping others gives nothing: {PREEMPTION.get(gives, gives.replace('_', ' '))}"
    return f"stopping others of lower priority here gives {num(gives['gives'])} more"


def may_view(request: HttpRequest, name: str) -> bool:
    """Whether this person may look at that kind of object."""
    return any(request.user.has_perm(f"sizing.{verb}_{name}") for verb in ("view", "change"))
