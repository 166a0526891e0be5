"""What is measured of a model: for each variant and profile the figure, its history, and what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Window
from django.db.models.functions import RowNumber
from django.http import HttpRequest
from django.utils.safestring import SafeString

from sizing.admin.charts import Entry, history_chart, mark_key
from sizing.admin.measured import asking, words
from sizing.admin.measured.comparing import compare_url
from sizing.admin.measured.runs import CELLS, cell, live_rows_url
from sizing.domain.drift import Drift, drift
from sizing.measuring.refreshes import measurable
from sizing.measuring.staleness import Look
from sizing.models import BenchProfile, Measurement, Refresh, ServedModel, Variant
from sizing.templatetags.desk import age, num, rate

HISTORY = 50
PAIRS_SHOWN = 20

KINDS = {"pass": "measured", "floor": "at least this"}
"""The marks of a history, and what they say."""

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Served:
    """A variant on a profile. `newest`: the one that counts; `unmet`: a later one that met no SLO."""

    variant: Variant
    profile: BenchProfile
    newest: Measurement | None
    unmet: Measurement | None
    compare_url: str
    age: str
    stale: str
    drift: Drift | None
    drift_words: str
    failure: Refresh | None
    failed_ago: str
    active: Refresh | None
    cells: dict[str, SafeString]
    why_not: str
    chart: SafeString | None
    keys: list[tuple[SafeString, str]]
    band: str


def measured_part(request: HttpRequest, model: ServedModel) -> dict[str, Any]:
    """The part of a model's page about measurements, in a constant number of queries."""
    variants = list(model.variants.select_related("model").order_by("position", "id"))
    histories = _histories(model)
    active = {
        (row.variant_id, row.profile_id): row
        for row in Refresh.objects.filter(variant__model=model, state__in=Refresh.ACTIVE)
    }
    ended = _last_ended(model)
    pairs = {*histories, *active, *ended}
    if model.default_profile_id:
        pairs |= {(variant.pk, model.default_profile_id) for variant in variants}
    profiles = BenchProfile.objects.in_bulk({profile for _, profile in pairs})
    can = measurable(variants)
    order = sorted(
        ((v, profiles[p]) for v in variants for p in profiles if (v.pk, p) in pairs),
        key=lambda pair: (variants.index(pair[0]), pair[1].name),
    )
    look = Look()
    served = [
        _served(
            variant,
            profile,
            histories.get((variant.pk, profile.pk), []),
            failure_of(ended.get((variant.pk, profile.pk)), histories.get((variant.pk, profile.pk), [])),
            active.get((variant.pk, profile.pk)),
            can[variant.pk].why_not,
            look,
        )
        for variant, profile in order[:PAIRS_SHOWN]
    ]
    sites = _registry(request)
    return {
        "served": served,
        "unmeasurable": list(dict.fromkeys(one.why_not for one in served if one.why_not and not one.active)),
        "more_served": max(len(order) - PAIRS_SHOWN, 0),
        "may_ask": asking.may_ask(request),
        "live_url": live_rows_url(list(active.values())) if sites["runs"] else "",
        "may_view_runs": sites["runs"],
        "may_view_measurements": sites["measurements"],
    }


def _registry(request: HttpRequest) -> dict[str, bool]:
    """Which pages this person may follow links to."""

    def may(name: str) -> bool:
        return any(request.user.has_perm(f"sizing.{verb}_{name}") for verb in ("view", "change"))

    return {"runs": may("refresh"), "measurements": may("measurement")}


def _histories(model: ServedModel) -> dict[Pair, list[Measurement]]:
    """The last measurements of each variant and profile, the oldest first."""
    number = Window(
        RowNumber(),
        partition_by=[F("variant"), F("profile")],
        order_by=[F("measured_at").desc(), F("pk").desc()],
    )
    rows = Measurement.objects.filter(variant__model=model).annotate(number=number)
    found: dict[Pair, list[Measurement]] = {}
    for row in rows.filter(number__lte=HISTORY).order_by("measured_at", "pk"):
        found.setdefault((row.variant_id, row.profile_id), []).append(row)
    return found


def _last_ended(model: ServedModel) -> dict[Pair, Refresh]:
    """The newest run of each variant and profile that is over."""
    number = Window(
        RowNumber(),
        partition_by=[F("variant"), F("profile")],
        order_by=[F("queued_at").desc(), F("pk").desc()],
    )
    rows = Refresh.objects.filter(variant__model=model).exclude(state__in=Refresh.ACTIVE)
    return {(r.variant_id, r.profile_id): r for r in rows.annotate(number=number).filter(number=1)}


def failure_of(last: Refresh | None, history: Sequence[Measurement]) -> Refresh | None:
    """The newest run that is over, where it failed and nothing was measured since."""
    if last is None or last.state != Refresh.State.FAILED or last.finished_at is None:
        return None
    return None if any(m.measured_at > last.finished_at for m in history) else last


def _served(
    variant: Variant,
    profile: BenchProfile,
    history: Sequence[Measurement],
    failure: Refresh | None,
    active: Refresh | None,
    why_not: str,
    look: Look,
) -> Served:
    now = look.now
    counting = [m for m in history if words.counts(m)]
    newest = counting[-1] if counting else None
    found = drift([m.tok_per_sec for m in counting])
    return Served(
        variant=variant,
        profile=profile,
        newest=newest,
        unmet=history[-1] if history and not words.counts(history[-1]) else None,
        compare_url=compare_url(counting[-2].pk, counting[-1].pk) if len(counting) > 1 else "",
        age=age((now - newest.measured_at).total_seconds()) if newest else "",
        stale=look.reason(newest.pk, profile.name, newest.measured_at) if newest else "",
        drift=found if found and found.marked else None,
        drift_words=drift_words(found) if found and found.marked else "",
        failure=failure,
        failed_ago=age((now - failure.finished_at).total_seconds())
        if failure and failure.finished_at
        else "",
        active=active,
        cells={name: cell(active, name) for name in CELLS} if active else {},
        why_not=why_not,
        chart=_chart(variant, profile, counting, found),
        keys=[(mark_key(kind), words) for kind, words in KINDS.items() if kind in map(_kind, counting)],
        band="within 10 % of the median of the five before the last" if found else "",
    )


def _kind(measurement: Measurement) -> str:
    return "floor" if measurement.bound == Measurement.Bound.FLOOR else "pass"


def drift_words(found: Drift) -> str:
    """How far the last measurement is from those before: `12.5 % below the median of the five before it`."""
    where = "below" if found.share < 0 else "above"
    return (
        f"{num(f'{abs(found.share) * 100:.1f}', '%')} {where} {rate(found.before)},"
        " the median of the five before it"
    )


def _chart(
    variant: Variant, profile: BenchProfile, counting: Sequence[Measurement], found: Drift | None
) -> SafeString | None:
    if len(counting) < 2:
        return None
    entries = [
        Entry(
            m.measured_at,
            float(m.tok_per_sec),
            _kind(m),
            f"{m.measured_at:%Y-%m-%d %H:%M} UTC: {rate(m.tok_per_sec)} tok/s, {m.source}",
        )
        for m in counting
    ]
    rates = [m.tok_per_sec for m in counting]
    about = f"{num(len(rates))} measurements from {rate(min(rates))} to {rate(max(rates))} tok/s."
    if found:
        about += f" The last one is {drift_words(found)}."
    return history_chart(
        f"history-{variant.pk}-{profile.pk}",
        entries,
        title=f"Tokens per second of {variant.name} on {profile.name} over time",
        about=about,
        before=float(found.before) if found else None,
    )
