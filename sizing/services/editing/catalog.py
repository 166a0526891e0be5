"""Writes of models, variants, profiles, measurements and targets."""

from __future__ import annotations

from typing import Any

from django.db.models import Max

from sizing.inventory.words import quoted
from sizing.models import BenchProfile, Measurement, Placement, ServedModel, Target, Variant
from sizing.services.editing.rows import (
    Given,
    assign,
    assign_by_hand,
    check_holdings,
    delete,
    model_named,
    nodes_of,
    profile_named,
    refusal,
    refuse_taken_name,
    row_of,
    save,
    variant_named,
    writing,
    wrong,
)
from sizing.services.errors import DeskError


def save_profile(given: Given, pk: int | None = None) -> int:
    """Make a bench profile, or change the one of this id. Gives the id."""
    with writing():
        profile = row_of(BenchProfile, pk)
        assign(profile, given)
        refuse_taken_name(profile)
        return save(profile)


def save_model(given: Given, pk: int | None = None) -> int:
    """Make or change a served model; `variants` replaces them all, by name and in order. Gives the id."""
    with writing():
        model = row_of(ServedModel, pk)
        fields = {k: v for k, v in given.items() if k != "variants"}
        if "default_profile" in given:
            fields["default_profile"] = profile_named(given["default_profile"], "default_profile")
        assign_by_hand(model, fields)
        refuse_taken_name(model)
        save(model)
        if "variants" in given:
            _save_variants(model, given["variants"])
        return int(model.pk)


def _save_variants(model: ServedModel, wanted: list[Given]) -> None:
    there = {variant.name: variant for variant in model.variants.all()}
    first: dict[str, int] = {}
    problems = {
        f"variants[{i}].name": [f"{quoted(given['name'])} is also variants[{first[given['name']]}]"]
        for i, given in enumerate(wanted)
        if first.setdefault(given["name"], i) < i
    }
    if problems:
        raise refusal(problems)
    for name in sorted(there.keys() - first.keys()):
        delete(there[name])
    new: list[Variant] = []
    changed: list[Variant] = []
    reshaped: list[Variant] = []
    for position, given in enumerate(wanted):
        variant = there.get(given["name"]) or Variant(model=model)
        shape = _shape(variant)
        assign_by_hand(variant, {**given, "position": position})
        if variant.pk and _shape(variant) != shape:
            reshaped.append(variant)
        (changed if variant.pk else new).append(variant)
    Variant.objects.bulk_create(new)
    written = [f.name for f in Variant._meta.concrete_fields if f.name not in ("id", "model", "name")]
    Variant.objects.bulk_update(changed, written)
    if reshaped:
        _check_running(reshaped)


def _shape(variant: Variant) -> tuple[Any, ...]:
    """What decides what a replica holds."""
    return (variant.nodes, variant.gpus, variant.gpu_memory_mib, variant.gpu_memory_fraction)


def _check_running(variants: list[Variant]) -> None:
    """What runs keeps its GPUs, so it must fit the new shape."""
    check_holdings(nodes_of(Placement.objects.filter(replica__variant__in=variants)))


def save_variant(given: Given, pk: int | None = None) -> int:
    """Make or change a variant of a model. Gives the id."""
    with writing():
        variant = row_of(Variant, pk)
        if "model" in given:
            model = model_named(given["model"])
            if pk is not None and model.pk != variant.model_id:
                raise wrong("model", "cannot be changed: make the variant anew in the other model")
            variant.model = model
        shape = _shape(variant)
        assign_by_hand(variant, {k: v for k, v in given.items() if k != "model"})
        if pk is None and "position" not in given:
            last = variant.model.variants.aggregate(last=Max("position"))["last"]
            variant.position = 0 if last is None else last + 1
        if variant.model.variants.filter(name=variant.name).exclude(pk=pk or 0).exists():
            raise wrong("name", f"the model has a variant {quoted(variant.name)} already")
        save(variant)
        if pk is not None and _shape(variant) != shape:
            _check_running([variant])
        return int(variant.pk)


def save_measurement(given: Given, pk: int | None = None) -> int:
    """Make or change a measurement. Gives the id."""
    with writing():
        measurement = row_of(Measurement, pk)
        if pk is not None and measurement.was_measured:
            raise DeskError(
                "what a load generator measured cannot be changed; delete it, or measure again",
                code="conflict",
                status=409,
            )
        if "model" in given or "variant" in given:
            old = measurement.variant if pk is not None else None
            model = model_named(given["model"]) if "model" in given or old is None else old.model
            measurement.variant = variant_named(model, given.get("variant", old.name if old else ""))
        if "profile" in given:
            profile = profile_named(given["profile"], "profile")
            assert profile is not None  # a measurement's profile has a name
            measurement.profile = profile
        assign(measurement, {k: v for k, v in given.items() if k not in ("model", "variant", "profile")})
        return save(measurement)


def save_target(given: Given, pk: int | None = None) -> int:
    """Make or change a saved target. Gives the id."""
    with writing():
        target = row_of(Target, pk)
        if "model" in given:
            target.model = model_named(given["model"])
        if "profile" in given:
            target.profile = profile_named(given["profile"], "profile")
        variant = given.get("variant", target.variant and target.variant.name)
        target.variant = None if variant is None else variant_named(target.model, variant)
        assign(target, {k: v for k, v in given.items() if k not in ("model", "profile", "variant")})
        same = Target.objects.filter(model=target.model, profile=target.profile, variant=target.variant)
        if same.exclude(pk=pk or 0).exists():
            raise wrong("model", "there is a target with this model, profile and variant already")
        return save(target)
