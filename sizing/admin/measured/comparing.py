"""The page that holds two measurements against each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from sizing.admin.measured.curves import Side
from sizing.admin.measured.differences import compared
from sizing.models import BenchLevel, Measurement
from sizing.templatetags.desk import num, rate

CHOICES = 50
HOW = "Choose two: here, or mark them in the list of measurements and take the action Compare."


def compare_url(a: int, b: int) -> str:
    """Where measurement `b` is compared with `a`."""
    return f"{reverse('admin:sizing_measurement_compare')}?a={a}&b={b}"


def one_before(measurement: Measurement) -> Measurement | None:
    """The measurement of the same variant and profile before this one."""
    earlier = Q(measured_at__lt=measurement.measured_at) | Q(
        measured_at=measurement.measured_at, pk__lt=measurement.pk
    )
    same = Measurement.objects.filter(variant=measurement.variant_id, profile=measurement.profile_id)
    return same.filter(earlier).order_by("-measured_at", "-pk").first()


def compare_view(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """By GET: `a` and `b` are the numbers of two measurements; `b` is told as a difference from `a`."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    if request.method not in ("GET", "HEAD"):
        return HttpResponseNotAllowed(["GET", "HEAD"])
    asked = [request.GET.get(name, "") for name in ("a", "b")]
    rows = _rows(asked)
    chosen = [rows.get(text) for text in asked]
    problem, status = _problem(asked, chosen)
    context = {
        **model_admin.admin_site.each_context(request),
        "title": "Compare two measurements",
        "subtitle": None,
        "opts": model_admin.opts,
        "media": model_admin.media,
        "problem": problem,
        "how": HOW if not any(asked) else "",
        "fields": _fields(asked, [row for row in chosen if row]),
    }
    a, b = chosen
    if a and b and not problem:
        levels = _levels(a, b)
        context |= compared(Side("A", a, levels[a.pk]), Side("B", b, levels[b.pk]))
        context["swapped"] = compare_url(b.pk, a.pk)
    return TemplateResponse(request, "admin/sizing/measurement/compare.html", context, status=status)


def _rows(asked: Sequence[str]) -> dict[str, Measurement]:
    pks = {text for text in asked if text.isascii() and text.isdecimal() and len(text) < 19}
    rows = Measurement.objects.filter(pk__in=pks).select_related("variant__model", "profile")
    found = {str(row.pk): row for row in rows}
    return {text: found[str(int(text))] for text in pks if str(int(text)) in found}


def _problem(asked: Sequence[str], chosen: Sequence[Measurement | None]) -> tuple[str, int]:
    """What is wrong with the choice, and the status that says so; an empty page is no problem."""
    for text, row in zip(asked, chosen, strict=True):
        if text and row is None:
            return (
                f'There is no measurement "{text[:20]}"; it may have been deleted. Choose another one.',
                404,
            )
    if any(asked) and not all(asked):
        return "One measurement is chosen; choose the other one.", 200
    if all(asked) and chosen[0] == chosen[1]:
        return "That is one measurement twice; choose another one to compare it with.", 200
    return "", 200


def _levels(a: Measurement, b: Measurement) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {a.pk: [], b.pk: []}
    for level in BenchLevel.objects.filter(measurement__in=(a, b)):
        found[level.measurement_id or 0].append(level.judged)
    return found


def _fields(asked: Sequence[str], chosen: Sequence[Measurement]) -> list[dict[str, Any]]:
    """The two choices: the newest measurements, of the same models where some are chosen."""
    offered: QuerySet[Measurement] = Measurement.objects.select_related("variant__model", "profile")
    if chosen:
        offered = offered.filter(variant__model__in={row.variant.model_id for row in chosen})
    rows = {row.pk: row for row in [*offered.order_by("-measured_at", "-pk")[:CHOICES], *chosen]}
    options = [(str(pk), _label(row)) for pk, row in rows.items()]
    names = (("a", "A, compared with"), ("b", "B"))
    return [
        {"name": name, "label": label, "value": text, "options": options}
        for (name, label), text in zip(names, asked, strict=True)
    ]


def _label(row: Measurement) -> str:
    served = f"{rate(row.tok_per_sec)} tok/s" if row.slo_met else "SLO not met"
    what = f"{row.variant.model.name} ({row.variant.name}) on {row.profile.name}"
    return f"{row.measured_at:%Y-%m-%d %H:%M} · {what} · {served}"


def compare_action(
    model_admin: Any, request: HttpRequest, queryset: QuerySet[Measurement]
) -> HttpResponse | None:
    """The action of the list: the older of two marked ones is the one compared with."""
    number = queryset.count()
    if number != 2:
        said = f"Compare takes two measurements; {num(number)} {'is' if number == 1 else 'are'} marked."
        model_admin.message_user(request, f"{said} Mark two, then choose it again.", messages.WARNING)
        return None
    a, b = queryset.order_by("measured_at", "pk").values_list("pk", flat=True)
    return HttpResponseRedirect(compare_url(a, b))
