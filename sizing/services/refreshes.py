"""Asking for a measurement: what the page, the API and the command do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from sizing import tasks
from sizing.measuring import refreshes
from sizing.models import BenchProfile, Refresh, Replica, ServedModel, Variant, history
from sizing.services.errors import DeskError


def request(
    model: str,
    profile: str | None = None,
    variant: str | None = None,
    replica: str | None = None,
    *,
    trigger: str,
    user: User | None = None,
    save_result: bool = True,
    options: Mapping[str, Any] | None = None,
    wake: bool = True,
) -> Refresh:
    """Queue a measurement of a model's variant on a profile, and wake a worker for it.

    profile: left out, the model's default, else the only one measured. variant: left out, the first in
    order of preference with a replica that may be measured. replica: left out, any such one.
    DeskError 404 where there is no such model, 400 where it cannot be measured and why, 409 where a
    refresh of the same variant and profile is queued or running.
    """
    found = ServedModel.objects.filter(name=model).first()
    if found is None:
        raise DeskError(f'no model "{model}"', code="not_found", status=404)
    on = _profile(found, profile)
    of, one = _variant(found, variant, replica)
    try:
        with transaction.atomic():
            row = Refresh.objects.create(
                variant=of,
                profile=on,
                replica=one,
                trigger=trigger,
                requested_by=user,
                save_result=save_result,
                options=dict(options or {}),
            )
            if trigger != Refresh.Trigger.ADMIN:  # the pages tell it themselves
                history.write(history.by_trigger(trigger, user), [history.added(row)])
    except IntegrityError:
        active = Refresh.objects.filter(variant=of, profile=on, state__in=Refresh.ACTIVE).first()
        which = f"refresh {active.pk} is {active.state}" if active else "another refresh is active"
        raise DeskError(
            f"{which} for {model} ({of.name}) on {on.name} already", code="conflict", status=409
        ) from None
    if wake:
        transaction.on_commit(lambda: tasks.wake(row.pk))
    return row


def retry(pk: int, *, trigger: str, user: User | None = None) -> Refresh:
    """Ask for the same again as a run that is over did, on any replica; DeskError while it is active."""
    row = Refresh.objects.select_related("variant__model", "profile", "replica").filter(pk=pk).first()
    if row is None:
        raise DeskError(f"no refresh {pk}", code="not_found", status=404)
    if row.state in Refresh.ACTIVE:
        raise DeskError(f"refresh {pk} is {row.state}; it needs no retry", code="conflict", status=409)
    return request(
        row.variant.model.name,
        row.profile.name,
        row.variant.name,
        trigger=trigger,
        user=user,
        save_result=row.save_result,
        options=row.options,
    )


def _profile(model: ServedModel, name: str | None) -> BenchProfile:
    if name is not None:
        profile = BenchProfile.objects.filter(name=name).first()
        if profile is None:
            there_are = ", ".join(BenchProfile.objects.order_by("name").values_list("name", flat=True))
            raise DeskError(f'no profile "{name}"; there are {there_are or "none"}', code="unknown_profile")
        return profile
    if model.default_profile is not None:
        return model.default_profile
    measured = list(
        BenchProfile.objects.filter(measurements__variant__model=model).distinct().order_by("name")
    )
    if len(measured) == 1:
        return measured[0]
    names = ", ".join(p.name for p in measured or BenchProfile.objects.order_by("name")[:50])
    raise DeskError(
        f"{model.name} has no default profile; name one of {names or 'the profiles that you make first'}",
        code="profile_required",
    )


def _variant(model: ServedModel, name: str | None, replica: str | None) -> tuple[Variant, Replica | None]:
    one = None
    if replica is not None:
        one = Replica.objects.select_related("variant").filter(name=replica, variant__model=model).first()
        if one is None:
            raise DeskError(f'{model.name} has no replica "{replica}"', code="unknown_replica")
        if name is not None and one.variant.name != name:
            raise DeskError(f'replica "{replica}" runs variant "{one.variant.name}", not "{name}"')
        name = one.variant.name
    variants = list(model.variants.select_related("model").order_by("position", "id"))
    if not variants:
        raise DeskError(f"{model.name} has no variant", code="unknown_variant")
    if name is not None:
        variants = [variant for variant in variants if variant.name == name]
        if not variants:
            there_are = ", ".join(model.variants.order_by("position", "id").values_list("name", flat=True))
            raise DeskError(
                f'{model.name} has no variant "{name}"; there are {there_are}', code="unknown_variant"
            )
    can = refreshes.measurable(variants)
    if one is not None:
        if one.name in can[one.variant_id].replicas:
            return variants[0], one
        reason = can[one.variant_id].why_not or f"{one.name} is not to be measured: {refreshes.why_not(one)}"
        raise DeskError(reason, code="not_benchable")
    for variant in variants:
        if can[variant.pk].replicas:
            return variant, None
    raise DeskError(can[variants[0].pk].why_not, code="not_benchable")
