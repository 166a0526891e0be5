"""Why a measurement no longer speaks for what runs: its age, or a cause that changed since."""

from __future__ import annotations

from datetime import datetime, timedelta

from sizing.domain.fleet import Fleet
from sizing.domain.gpu_types import type_key
from sizing.domain.specs import MeasurementSpec, ProfileSpec, VariantSpec
from sizing.domain.wording import claim, number


def shape_of(variant: VariantSpec) -> str:
    """What of a variant decides what its replica can serve, in words; kept beside a measurement."""
    nodes = f"{number(variant.nodes)} nodes × " if variant.nodes > 1 else ""
    gpus = f"{number(variant.gpus)} GPU{'s' if variant.gpus > 1 else ''}"
    return f"{nodes}{gpus}, {claim(variant)}"


def why_stale(
    measured: MeasurementSpec, variant: VariantSpec, profile: ProfileSpec, fleet: Fleet, now: datetime
) -> str | None:
    """The reason in words, or None: another variant, other GPUs or another engine than measured, then age.

    Causes are known only of measurements that the desk took itself.
    """
    return cause_of(measured, variant, fleet) or too_old(measured.measured_at, profile, now)


def too_old(measured_at: datetime, profile: ProfileSpec, now: datetime) -> str | None:
    """The reason in words where a measurement has reached the age that its profile allows, or None."""
    every = profile.refresh_every_h
    if every is None or now - measured_at < timedelta(hours=float(every)):
        return None
    return f"older than {number(every)} h"


def cause_of(measured: MeasurementSpec, variant: VariantSpec, fleet: Fleet) -> str | None:
    """What changed since in the variant, the GPUs or the engine, in words, or None."""
    if measured.variant_shape and measured.variant_shape != shape_of(variant):
        return f"the variant changed: measured with {measured.variant_shape}, now {shape_of(variant)}"
    if measured.gpu_type:
        now = _types_now(variant, measured.model, fleet)
        if now and type_key(measured.gpu_type) not in {type_key(name) for name in now}:
            return f"the GPU type changed: measured on {measured.gpu_type}, now {' or '.join(sorted(now))}"
    known = measured.variant_shape and measured.engine and measured.engine_seen
    if known and measured.engine != measured.engine_seen:
        return f"the engine changed: measured with {measured.engine}, now {measured.engine_seen}"
    return None


def _types_now(variant: VariantSpec, model: str, fleet: Fleet) -> set[str]:
    """The types that its replicas run on, else those that the variant asks for; empty: any."""
    hardware = fleet.hardware
    running = {
        hardware.type_names[hardware.gpu_type[gpu]]
        for spec in fleet.serving(model)
        if spec.variant == variant.name
        for gpu in fleet.replicas[spec.name].gpus
    }
    return running or set(variant.gpu_types)
