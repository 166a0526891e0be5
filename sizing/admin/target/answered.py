"""What the page says of one answer, put together from its parts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from sizing.admin import words
from sizing.admin.measured import asking
from sizing.admin.measured.level_table import levels_part
from sizing.admin.target.elsewhere import elsewhere
from sizing.admin.target.map import map_part
from sizing.admin.target.nodes import nodes_part
from sizing.admin.target.question import Params
from sizing.admin.target.supposed import steps
from sizing.domain.answer import Answer
from sizing.models import Measurement, Node, ServedModel

VICTIMS_SHOWN = 50


def answer_part(
    model_admin: Any, request: HttpRequest, model: ServedModel, params: Params, answer: Answer
) -> dict[str, Any]:
    """The answer's part of the page."""
    form = answer.as_dict(timezone.now(), victims=VICTIMS_SHOWN)
    counts = words.counts(answer)
    helping = steps(answer, params)
    links = model_admin.admin_site.get_model_admin(Node).has_view_permission(request)
    return {
        "answer": form,
        "sentence": words.sentence(counts),
        "verdict": words.verdict(counts),
        # The page lists apart what would help, which stands at the end.
        "in_the_way": answer.blocked[: len(answer.blocked) - len(helping)],
        "steps": helping,
        **measurement_part(model_admin, request, model, answer, form),
        "victims": (form["preemption"] or {}).get("victims"),
        "more_victims": max(len(answer.reach.victims) - VICTIMS_SHOWN, 0),
        **map_part(answer, links),
        **nodes_part(request.GET, answer, links),
        **elsewhere(request, model.name, params),
    }


def measurement_part(
    model_admin: Any, request: HttpRequest, model: ServedModel, answer: Answer, form: Mapping[str, Any]
) -> dict[str, Any]:
    """The figure that the answer rests on, for those who may see measurements with its page and its curve;
    and the offer to measure again where it is stale or only a floor."""
    told = form["measurement"]
    again = told["stale"] or told["bound"] == Measurement.Bound.FLOOR
    part = {
        "bound": words.bound_words(told["bound"]),
        "measured_at": datetime.fromisoformat(told["measured_at"]),
        "offer": asking.offer(request, model, form["variant"], form["profile"]) if again else None,
    }
    measurement_admin = model_admin.admin_site.get_model_admin(Measurement)
    if not measurement_admin.has_view_permission(request):
        return part
    stored = Measurement.objects.select_related("profile").filter(pk=answer.count.measurement.order).first()
    if stored is None:  # gone since the answer was found
        return part
    levels = levels_part(list(stored.levels.all()), stored.slo)
    return part | {"measurement_pk": stored.pk, "levels": levels}
