"""Asking for a measurement from a page: who may, whether it can be taken, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import reverse

from sizing.domain.wording import names
from sizing.measuring.refreshes import Measurable, measurable, why_not
from sizing.models import Measurement, Refresh, Replica, ServedModel, Variant
from sizing.services.errors import DeskError
from sizing.templatetags.desk import num

MOST_AT_ONCE = 200
REFUSALS_SHOWN = 5
NO_PROFILE = "it has no default profile; give it one"


def may_ask(request: HttpRequest) -> bool:
    """Whether this person may have a measurement taken."""
    return request.user.has_perm("sizing.add_refresh")


def refresh_url(refresh: Refresh) -> str:
    return reverse("admin:sizing_refresh_change", args=[refresh.pk])


@dataclass(frozen=True, slots=True)
class Wish:
    """One measurement that somebody wants: of what, on what, on which replicas; or why it cannot be."""

    model: str
    variant: str
    profile: str
    replicas: tuple[str, ...] = ()
    problem: str = ""
    replica: str | None = None  # on this one and no other

    @property
    def what(self) -> str:
        of = f"{self.model} ({self.variant})" if self.variant else self.model
        return f"{of} on {self.profile}" if self.profile else of

    def __str__(self) -> str:
        if self.problem:
            return f"{self.what}: left out, {self.problem}"
        return f"{self.what}: measured on {'one of ' * (len(self.replicas) > 1)}{names(self.replicas)}"


def wishes_of_models(models: Sequence[ServedModel]) -> list[Wish]:
    """For each model its default profile, else its only measured one, and its first measurable variant."""
    by_model: dict[int, list[Variant]] = {model.pk: [] for model in models}
    variants = list(
        Variant.objects.filter(model__in=models).select_related("model").order_by("position", "id")
    )
    for variant in variants:
        by_model[variant.model_id].append(variant)
    can = measurable(variants)
    measured: dict[int, set[str]] = {}
    pairs = Measurement.objects.filter(variant__model__in=models).order_by()
    for pk, name in pairs.values_list("variant__model_id", "profile__name").distinct():
        measured.setdefault(pk, set()).add(name)
    active = _active(variants)
    return [
        _of_model(model, by_model[model.pk], can, measured.get(model.pk, set()), active) for model in models
    ]


def _of_model(
    model: ServedModel,
    variants: Sequence[Variant],
    can: dict[int, Measurable],
    measured: set[str],
    active: dict[tuple[int, str], Refresh],
) -> Wish:
    profile = model.default_profile.name if model.default_profile else ""
    if not profile and len(measured) == 1:
        (profile,) = measured
    if not profile:
        return Wish(model.name, "", "", problem=NO_PROFILE)
    if not variants:
        return Wish(model.name, "", "", problem="it has no variant; add one")
    variant = next((v for v in variants if can[v.pk].replicas), variants[0])
    return _wish(variant, profile, can[variant.pk], active)


def wishes_of_variants(variants: Sequence[Variant]) -> list[Wish]:
    """Each variant (with its model and the model's profile) on its model's default profile."""
    can, active = measurable(variants), _active(variants)
    found = []
    for variant in variants:
        profile = variant.model.default_profile
        if profile is None:
            found.append(Wish(variant.model.name, variant.name, "", problem=NO_PROFILE))
        else:
            found.append(_wish(variant, profile.name, can[variant.pk], active))
    return found


def wishes_of_replicas(replicas: Sequence[Replica]) -> list[Wish]:
    """For each variant among the replicas (with model and profile) the first that may be measured."""
    of_variant: dict[int, list[Replica]] = {}
    for replica in replicas:
        of_variant.setdefault(replica.variant_id, []).append(replica)
    found = []
    for wish, chosen in zip(
        wishes_of_variants([mine[0].variant for mine in of_variant.values()]),
        of_variant.values(),
        strict=True,
    ):
        names_of = {replica.name for replica in chosen}
        first = next((name for name in wish.replicas if name in names_of), None)
        if first is not None:
            found.append(replace(wish, replicas=(first,), replica=first))
        elif wish.problem and wish.replicas:
            found.append(wish)
        else:
            reasons = "; ".join(f"{one.name}: {why_not(one)}" for one in chosen[:REFUSALS_SHOWN])
            problem = reasons if wish.profile else wish.problem
            found.append(replace(wish, replicas=(), problem=problem))
    return found


def wishes_of_measurements(measurements: Iterable[Measurement]) -> list[Wish]:
    """For each variant and profile among the measurements, once."""
    pairs = {(m.variant_id, m.profile_id): (m.variant, m.profile) for m in measurements}
    variants = list({variant.pk: variant for variant, _ in pairs.values()}.values())
    can, active = measurable(variants), _active(variants)
    return [_wish(variant, profile.name, can[variant.pk], active) for variant, profile in pairs.values()]


def _wish(variant: Variant, profile: str, can: Measurable, active: dict[tuple[int, str], Refresh]) -> Wish:
    running = active.get((variant.pk, profile))
    problem = f"refresh {running.pk} is {running.state} already" if running else can.why_not
    return Wish(variant.model.name, variant.name, profile, can.replicas, problem)


def _active(variants: Sequence[Variant]) -> dict[tuple[int, str], Refresh]:
    rows = Refresh.objects.filter(variant__in=variants, state__in=Refresh.ACTIVE).select_related("profile")
    return {(row.variant_id, row.profile.name): row for row in rows}


@dataclass(frozen=True, slots=True)
class Offer:
    """What a page offers beside a figure that should be measured again."""

    variant: str
    profile: str
    active: Refresh | None
    allowed: bool
    why_not: str


def offer(request: HttpRequest, model: ServedModel, variant: str | None, profile: str | None) -> Offer:
    """For a model; without a variant any that can be measured, without a profile the model's own."""
    variants = list(model.variants.select_related("model").order_by("position", "id"))
    asked = [v for v in variants if variant in (None, v.name)]
    can = measurable(asked)
    chosen = next((v for v in asked if can[v.pk].replicas), asked[0] if asked else None)
    why_not = f"{model.name} has no variant" if chosen is None else can[chosen.pk].why_not
    on = profile or (model.default_profile.name if model.default_profile else None)
    active = _active([chosen]).get((chosen.pk, on)) if chosen and on else None
    return Offer(variant or "", profile or "", active, may_ask(request), why_not)


def ask(
    request: HttpRequest, model: str, profile: str | None, variant: str | None, replica: str | None = None
) -> tuple[Refresh | None, str]:
    """Queue a measurement; the run, or why there is none."""
    from sizing.services import refreshes

    try:
        user = _signed_in(request)
        row = refreshes.request(model, profile, variant, replica, trigger=Refresh.Trigger.ADMIN, user=user)
    except DeskError as error:
        return None, error.message
    return row, ""


def again(request: HttpRequest, pk: int) -> tuple[Refresh | None, str]:
    """The same run again; the new one, or why there is none."""
    from sizing.services import refreshes

    try:
        return refreshes.retry(pk, trigger=Refresh.Trigger.ADMIN, user=_signed_in(request)), ""
    except DeskError as error:
        return None, error.message


def _signed_in(request: HttpRequest) -> User | None:
    return request.user if request.user.is_authenticated else None


def refresh_view(model_admin: Any, request: HttpRequest, object_id: str) -> HttpResponse:
    """Have a model measured, by POST: `variant` and `profile` name what, left empty the desk chooses."""
    if not (may_ask(request) and model_admin.has_view_permission(request)):
        raise PermissionDenied
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    model: ServedModel | None = model_admin.get_object(request, object_id)
    if model is None:
        return model_admin._get_obj_does_not_exist_redirect(  # type: ignore[no-any-return]
            request, model_admin.opts, object_id
        )
    variant, profile = request.POST.get("variant") or None, request.POST.get("profile") or None
    row, refusal = ask(request, model.name, profile, variant)
    back = reverse("admin:sizing_servedmodel_change", args=[model.pk])
    return after_asking(model_admin, request, row, refusal, back)


def after_asking(
    model_admin: Any, request: HttpRequest, row: Refresh | None, refusal: str, back: str
) -> HttpResponse:
    """Say what came of it, and go to the run where there is one to see."""
    if row is None:
        model_admin.message_user(request, f"Not measured: {refusal}.", messages.ERROR)
        return HttpResponseRedirect(back)
    admin_of_runs = model_admin.admin_site.get_model_admin(Refresh)
    admin_of_runs.log_addition(request, row, [{"added": {}}])
    if not admin_of_runs.has_view_permission(request):
        model_admin.message_user(request, f"Refresh {row.pk} is queued.", messages.SUCCESS)
        return HttpResponseRedirect(back)
    return HttpResponseRedirect(refresh_url(row))


def refresh_action(model_admin: Any, request: HttpRequest, wishes: Sequence[Wish]) -> HttpResponse | None:
    """The action of a list: first what it will do, then, confirmed, the runs."""
    possible = [wish for wish in wishes if not wish.problem]
    if len(possible) > MOST_AT_ONCE:
        said = (
            f"{num(len(possible))} measurements are selected; at most {MOST_AT_ONCE} can be queued at once."
        )
        model_admin.message_user(request, said, messages.ERROR)
        return None
    if not possible:
        for wish in wishes[:REFUSALS_SHOWN]:
            model_admin.message_user(request, f"Not measured: {wish.what}: {wish.problem}.", messages.WARNING)
        return None
    if not request.POST.get("confirmed"):
        number = f"{num(len(possible))} measurement{'s' * (len(possible) != 1)}"
        return model_admin.confirmation(  # type: ignore[no-any-return]
            request,
            action="refresh_now",
            title=f"Take {number} anew?",
            changes=[str(wish) for wish in [*possible, *(w for w in wishes if w.problem)]],
            note=(
                "Each puts one replica under full load until its limit is found, one at a time on a node;"
                " whoever it serves will notice. What was measured before counts until a new figure is there."
            ),
            button="Yes, measure",
        )
    queued, refusals = [], []
    for wish in possible:
        row, refusal = ask(request, wish.model, wish.profile, wish.variant, wish.replica)
        if row is None:
            refusals.append(refusal)
        else:
            queued.append(row)
            model_admin.admin_site.get_model_admin(Refresh).log_addition(request, row, [{"added": {}}])
    if queued:
        said = f"{num(len(queued))} refresh{'es are' if len(queued) > 1 else ' is'} queued; see Refreshes."
        model_admin.message_user(request, said, messages.SUCCESS)
    for refusal in refusals[:REFUSALS_SHOWN]:
        model_admin.message_user(request, f"Not measured: {refusal}.", messages.WARNING)
    return None
