"""The Target page: one question about one model, by GET, so that an answer can be linked to."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.response import TemplateResponse
from django.urls import get_script_prefix

from sizing.admin import words
from sizing.admin.measured import asking
from sizing.models import BenchProfile, Measurement, ServedModel
from sizing.services.errors import DeskError

QUESTION = ("tokens_per_sec", "profile", "variant", "utilization")
ROWS_A_PAGE = 100
HOLDERS_SHOWN = 5
VICTIMS_SHOWN = 200
CHOICES_SHOWN = 500


@dataclass(frozen=True)
class NodeRow:
    """A line of the node table."""

    name: str
    code: str
    reason: str
    fits: int
    numbers: list[tuple[str, Any]]
    holders: list[str]
    more_holders: int
    stops: list[str]
    fits_after: int | None
    numbers_after: list[tuple[str, Any]]


@dataclass(frozen=True)
class CodeGroup:
    """How many nodes share a code, and the address of their rows alone."""

    code: str
    reason: str
    nodes: int
    fits: int
    query: str
    chosen: bool


def target_view(model_admin: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    """Ask what a model would take. Needs the permission to view models."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    model: ServedModel | None = model_admin.get_object(request, object_id)
    if model is None:
        return model_admin._get_obj_does_not_exist_redirect(  # type: ignore[no-any-return]
            request, model_admin.opts, object_id
        )
    params = asked(request.GET)
    context: dict[str, Any] = {
        **model_admin.admin_site.each_context(request),
        "title": f"What would {model.name} take?",
        "subtitle": None,
        "opts": model_admin.opts,
        "original": model,
        "params": {name: values[-1] for name, values in params.items()},
        **choices(model, params),
    }
    if params:
        context |= answered(request, model, params)
    if error := context.get("error"):
        context |= next_steps(model_admin, request, model, error)
        if error.code == "not_measured":
            asked_of = context["params"]
            context["offer"] = asking.offer(request, model, asked_of.get("variant"), asked_of.get("profile"))
    return TemplateResponse(request, "admin/sizing/servedmodel/target.html", context)


def asked(query: QueryDict) -> dict[str, list[str]]:
    """The question's own parameters. A field left empty in the form is not part of the question."""
    params = {name: query.getlist(name) for name in QUESTION if name in query}
    return {name: values for name, values in params.items() if name == "tokens_per_sec" or values != [""]}


def choices(model: ServedModel, params: Mapping[str, list[str]]) -> dict[str, Any]:
    """What the form offers: profiles, those first on which the model is measured, and its variants.

    What was asked stays among them also where there is no such thing.
    """
    measured = set(
        Measurement.objects.filter(variant__model=model).values_list("profile__name", flat=True).distinct()
    )
    names = list(BenchProfile.objects.order_by("name").values_list("name", flat=True)[:CHOICES_SHOWN])
    profiles = [(name, name) for name in names if name in measured]
    profiles += [(name, f"{name} (not measured)") for name in names if name not in measured]
    variants = model.variants.order_by("position", "id").values_list("name", flat=True)[:CHOICES_SHOWN]
    return {
        "profiles": with_asked(profiles, params.get("profile")),
        "variants": with_asked([(name, name) for name in variants], params.get("variant")),
    }


def with_asked(offered: list[tuple[str, str]], asked: list[str] | None) -> list[tuple[str, str]]:
    """The choices, and what was asked beside them."""
    if not asked or asked[-1] in (name for name, _label in offered):
        return offered
    return [*offered, (asked[-1], f"{asked[-1]} (not among them)")]


def answered(request: HttpRequest, model: ServedModel, params: Mapping[str, list[str]]) -> dict[str, Any]:
    """The answer's part of the page, or `error`."""
    from sizing.services.targets import ask, parse_question

    try:
        answer = ask(replace(parse_question(model.name, params), explain_nodes=True))
    except DeskError as error:
        return {"error": error}
    return {
        "answer": answer,
        "sentence": words.sentence(answer),
        "verdict": words.verdict(answer),
        "in_the_way": in_the_way(answer),
        "bound": words.bound_words((answer.get("measurement") or {}).get("bound")),
        "measured_at": _time((answer.get("measurement") or {}).get("measured_at")),
        **victims_part(answer),
        **nodes_part(answer.get("nodes") or [], request.GET),
        "offer": measuring_offer(request, model, answer),
        **elsewhere(request, model.name, params),
    }


def measuring_offer(request: HttpRequest, model: ServedModel, answer: dict[str, Any]) -> asking.Offer | None:
    """The offer to measure again what the answer rests on, where that is stale or only a floor."""
    measurement = answer.get("measurement") or {}
    if not measurement.get("stale") and measurement.get("bound") != Measurement.Bound.FLOOR:
        return None
    return asking.offer(request, model, answer["variant"], answer["profile"])


def in_the_way(answer: dict[str, Any]) -> list[str]:
    """The sentences of `blocked` without the changes at their end, which the page lists apart."""
    sentences: list[str] = answer.get("blocked", [])
    return sentences[: len(sentences) - len(answer.get("changes", []))]


def next_steps(
    model_admin: Any, request: HttpRequest, model: ServedModel, error: DeskError
) -> dict[str, Any]:
    """What to do about an error."""
    measurement_admin = model_admin.admin_site.get_model_admin(Measurement)
    not_measured = error.code == "not_measured"
    return {
        "not_measured": not_measured,
        "may_add_measurement": not_measured and measurement_admin.has_add_permission(request),
        "first_variant": model.variants.order_by("position", "id").first(),
    }


def victims_part(answer: dict[str, Any]) -> dict[str, Any]:
    """Who would be stopped; nothing where nobody is."""
    victims = (answer.get("preemption") or {}).get("victims") or []
    return {"victims": victims[:VICTIMS_SHOWN], "more_victims": max(len(victims) - VICTIMS_SHOWN, 0)}


def nodes_part(nodes: list[dict[str, Any]], query: QueryDict) -> dict[str, Any]:
    """Nodes counted by code, and one page of rows, of one code where `code` names it."""
    counts = Counter(node["code"] for node in nodes)
    fits: Counter[str] = Counter()
    for node in nodes:
        fits[node["code"]] += node["fits"]
    code = query.get("code", "")
    chosen = [node for node in nodes if node["code"] == code] if code in counts else nodes
    page = Paginator(chosen, ROWS_A_PAGE).get_page(query.get("page"))
    return {
        "groups": [
            CodeGroup(
                name, words.node_reason(name), number, fits[name], _with(query, code=name), name == code
            )
            for name, number in sorted(
                counts.items(), key=lambda item: (item[0] != "open", -item[1], item[0])
            )
        ],
        "node_count": len(nodes),
        "all_query": _with(query, code=""),
        "code_chosen": code if code in counts else "",
        "page": page,
        "rows": [_row(node) for node in page.object_list],
        "previous_query": _with(query, page=str(page.previous_page_number())) if page.has_previous() else "",
        "next_query": _with(query, page=str(page.next_page_number())) if page.has_next() else "",
    }


def _row(node: dict[str, Any]) -> NodeRow:
    holders = node.get("holders") or []
    return NodeRow(
        name=node["node"],
        code=node["code"],
        reason=node.get("say") or words.node_reason(node["code"]),
        fits=node["fits"],
        numbers=[(words.number_name(key), value) for key, value in (node.get("numbers") or {}).items()],
        holders=holders[:HOLDERS_SHOWN],
        more_holders=max(len(holders) - HOLDERS_SHOWN, 0),
        stops=(node.get("after") or {}).get("stops") or [],
        fits_after=(node.get("after") or {}).get("fits"),
        numbers_after=[
            (words.number_name(key), value)
            for key, value in ((node.get("after") or {}).get("numbers") or {}).items()
        ],
    )


def elsewhere(request: HttpRequest, name: str, params: Mapping[str, list[str]]) -> dict[str, str]:
    """The same answer as JSON, by curl and by command."""
    single = {key: values[-1] for key, values in params.items()}
    path = f"{get_script_prefix()}api/v1/models/{quote(name, safe='/:')}/target?{urlencode(single)}"
    url = request.build_absolute_uri(path)
    command = ["python", "manage.py", "target", name, single.get("tokens_per_sec", "")]
    for key in ("profile", "variant", "utilization"):
        if key in single:
            command += [f"--{key}", single[key]]
    return {
        "json_url": path,
        "curl": f'curl -H "Authorization: Bearer $LLMGW_TOKEN" {shlex.quote(url)}',
        "command": shlex.join(command),
    }


def _with(query: QueryDict, **changed: str) -> str:
    """The page's query string with another page or code; a new code begins at its first page."""
    new = query.copy()
    new.pop("page", None)
    for key, value in changed.items():
        new.pop(key, None)
        if value:
            new[key] = value
    return new.urlencode()


def _time(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
