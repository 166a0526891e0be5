"""What result files are given for: the model, variant and profile by name, and how they are taken."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from sizing.measuring.importing import declared_time
from sizing.models import BenchProfile, ServedModel, Variant
from sizing.services.errors import DeskError


@dataclass(frozen=True, slots=True)
class Wish:
    """What files are given for.

    Without a variant they are looked at only; without a profile the default SLO judges them.
    force: points of another shape count too, with a warning. leave_out_broken: what is broken or of
    another shape is left out on purpose. measured_at: when it was measured, where the files do not say it.
    """

    variant: Variant | None = None
    profile: BenchProfile | None = None
    force: bool = False
    leave_out_broken: bool = False
    measured_at: datetime | None = None


def time_of(text: str | None) -> datetime | None:
    """The declared time of a measurement, None where there is none; DeskError 400 where it is not right."""
    if not text:
        return None
    try:
        return declared_time(text, timezone.now())
    except ValueError as reason:
        raise DeskError(str(reason)) from None


def wish(
    model: str | None = None,
    variant: str | None = None,
    profile: str | None = None,
    *,
    force: bool = False,
    leave_out_broken: bool = False,
    measured_at: datetime | None = None,
    to_store: bool = True,
) -> Wish:
    """The rows that these names mean.

    variant: left out, the model's only one. profile: left out, the model's default. DeskError 404 where
    there is no such model, 400 with the names that there are; and, to store, where the model is left out.
    """
    if model is None:
        if variant is not None:
            raise DeskError(
                "a variant is one of a model: name the model too", fields={"model": ["is missing"]}
            )
        if to_store:
            raise DeskError(
                "name the model that was measured, its variant, and the bench profile",
                fields={"model": ["is missing"]},
            )
        on = None if profile is None else _profile(profile)
        return Wish(None, on, force, leave_out_broken, measured_at)
    found = ServedModel.objects.select_related("default_profile").filter(name=model).first()
    if found is None:
        raise DeskError(f'no model "{model}"', code="not_found", status=404)
    of = _variant(found, variant)
    default = found.default_profile
    if profile is None and default is None:
        raise DeskError(
            f"{model} has no default profile; name one of {_names_of_profiles()}", code="profile_required"
        )
    on = default if profile is None else _profile(profile)
    return Wish(of, on, force, leave_out_broken, measured_at)


def _variant(model: ServedModel, name: str | None) -> Variant:
    there_are = {variant.name: variant for variant in model.variants.order_by("position", "id")}
    names = ", ".join(there_are) or "none"
    if name is None:
        if len(there_are) != 1:
            raise DeskError(
                f"name the variant of {model.name} that was measured; there are {names}",
                code="unknown_variant",
            )
        return next(iter(there_are.values()))
    if name not in there_are:
        raise DeskError(f'{model.name} has no variant "{name}"; there are {names}', code="unknown_variant")
    return there_are[name]


def _profile(name: str) -> BenchProfile:
    found = BenchProfile.objects.filter(name=name).first()
    if found is None:
        raise DeskError(f'no profile "{name}"; there are {_names_of_profiles()}', code="unknown_profile")
    return found


def _names_of_profiles() -> str:
    return ", ".join(BenchProfile.objects.order_by("name").values_list("name", flat=True)[:50]) or "none"
