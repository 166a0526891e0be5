"""The board's table of saved targets: how each stands now, the worst first."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest
from django.utils import timezone

from sizing.admin.standing import SIGNS, may_see_answers, row_of
from sizing.services.wishes import Kind, Standing, running_refreshes, worst_first
from sizing.templatetags.desk import num

ROWS_A_PAGE = 50
PAGE = "targets_page"
"""The parameter that names the page of targets."""
HAVE = "have"
"""The parameter that names the state of the fleet that the page shows already; part of no link."""

_COUNTED = {
    Kind.BLOCKED: ("does not fit", "do not fit"),
    Kind.PREEMPTS: ("fits by stopping others", "fit by stopping others"),
    Kind.UNMEASURED: ("without an answer", "without an answer"),
    Kind.FITS: ("fits", "fit"),
    Kind.SERVED: ("served", "served"),
}


def may_see_targets(request: HttpRequest) -> bool:
    """Whether this person may see saved targets and what they would take."""
    may = any(request.user.has_perm(f"sizing.{verb}_target") for verb in ("view", "change"))
    return may and may_see_answers(request)


def targets_part(request: HttpRequest) -> dict[str, Any]:
    """The context of `admin/board/targets.html`: one query for the targets where the inventory changed, one
    for their refreshes.

    `model` in the query keeps to the targets of that model.
    """
    if not may_see_targets(request):
        return {"targets_allowed": False}
    model = request.GET.get("model", "")
    found = [one for one in worst_first() if model in ("", one.target.model.name)]
    page = Paginator(found, ROWS_A_PAGE).get_page(request.GET.get(PAGE))
    shown = list(page.object_list)
    refreshes = running_refreshes(shown) if shown else {}
    now = timezone.now()
    return {
        "targets_allowed": True,
        "targets_summary": summary(found),
        "targets_rows": [row_of(one, now, refreshes.get(one.target.pk)) for one in shown],
        "targets_page": page,
        "targets_previous": _at(request, page.previous_page_number()) if page.has_previous() else "",
        "targets_next": _at(request, page.next_page_number()) if page.has_next() else "",
        "targets_model": model,
        "targets_all": _at(request, 1, every=True) if model else "",
        "targets_may_view_runs": any(
            request.user.has_perm(f"sizing.{verb}_refresh") for verb in ("view", "change")
        ),
        "targets_may_add": request.user.has_perm("sizing.add_target"),
    }


def summary(found: list[Standing]) -> list[tuple[str, str, str]]:
    """How many stand how, the worst first: kind, sign and words."""
    counts = Counter(one.kind for one in found)
    return [
        (kind.value, SIGNS[kind], f"{num(counts[kind])} {_COUNTED[kind][counts[kind] != 1]}")
        for kind in Kind
        if counts[kind]
    ]


def _at(request: HttpRequest, page: int, every: bool = False) -> str:
    """The board's query string at another page of targets; `every`: of all models."""
    query = request.GET.copy()
    for name in (PAGE, HAVE):
        query.pop(name, None)
    if every:
        query.pop("model", None)
    if page > 1:
        query[PAGE] = str(page)
    return query.urlencode()
