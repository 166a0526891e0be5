"""Write profiles, models, variants and targets."""

from __future__ import annotations

from sizing.inventory.applying.rows import Work, columns, insert, overwrite
from sizing.inventory.document import ModelEntry, TargetEntry, VariantEntry
from sizing.inventory.scheduling import tolerations_form
from sizing.models import BenchProfile, ServedModel, Target, Variant


def write_profiles(work: Work) -> None:
    ids = work.stored.profile_ids
    new = [BenchProfile(**columns(e)) for n, e in work.file.profiles.items() if n not in ids]
    changed = [
        BenchProfile(pk=ids[n], **columns(e))
        for n, e in work.file.profiles.items()
        if n in ids and e != work.old.profiles[n]
    ]
    insert(BenchProfile, new)
    overwrite(BenchProfile, changed)
    ids.update((row.name, row.pk) for row in new)
    work.changes.note("profiles", created=len(new), updated=len(changed), of=len(work.file.profiles))


def write_models(work: Work) -> None:
    ids = work.stored.model_ids
    new = [_model_row(work, e) for n, e in work.file.models.items() if n not in ids]
    changed = [
        _model_row(work, e) for n, e in work.file.models.items() if n in ids and e != work.old.models[n]
    ]
    insert(ServedModel, new)
    overwrite(ServedModel, changed)
    ids.update((row.name, row.pk) for row in new)
    work.changes.note("models", created=len(new), updated=len(changed), of=len(work.file.models))


def _model_row(work: Work, entry: ModelEntry) -> ServedModel:
    profile = entry.default_profile
    return ServedModel(
        pk=work.stored.model_ids.get(entry.name),
        default_profile_id=None if profile is None else work.stored.profile_ids[profile],
        **columns(entry, "default_profile", "variants", "broken"),
    )


def write_variants(work: Work) -> None:
    ids = work.stored.variant_ids
    new, changed, places = [], [], []
    there = 0
    for model, owner in work.file.models.items():
        for name, entry in (owner.variants or {}).items():
            there += 1
            if (model, name) not in ids:
                new.append(_variant_row(work, model, entry))
                places.append((model, name))
            elif entry != work.old.variant(model, name):
                changed.append(_variant_row(work, model, entry))
    insert(Variant, new)
    overwrite(Variant, changed, keep=("engine_seen",))
    ids.update((place, row.pk) for place, row in zip(places, new, strict=True))
    work.changes.note("variants", created=len(new), updated=len(changed), of=there)


def _variant_row(work: Work, model: str, entry: VariantEntry) -> Variant:
    spec = entry.spec
    return Variant(
        pk=work.stored.variant_ids.get((model, spec.name)),
        model_id=work.stored.model_ids[model],
        position=entry.position,
        source=entry.source,
        name=spec.name,
        nodes=spec.nodes,
        gpus=spec.gpus,
        gpu_memory_mib=spec.gpu_memory_mib,
        gpu_memory_fraction=spec.gpu_memory_fraction,
        gpu_types=list(spec.gpu_types),
        node_selector=dict(spec.node_selector),
        tolerations=tolerations_form(spec.tolerations),
        cpu_millis=spec.cpu_millis,
        memory_mib=spec.memory_mib,
        topology_key=spec.topology_key,
    )


def write_targets(work: Work) -> None:
    ids = work.stored.target_ids
    unknown = [e for key, e in work.file.targets.items() if key not in ids]
    new = [_target_row(work, e) for e in unknown]
    changed = [
        _target_row(work, e)
        for key, e in work.file.targets.items()
        if key in ids and e != work.old.targets[key]
    ]
    insert(Target, new)
    overwrite(Target, changed)
    ids.update((entry.key, row.pk) for entry, row in zip(unknown, new, strict=True))
    work.changes.note("targets", created=len(new), updated=len(changed), of=len(work.file.targets))


def _target_row(work: Work, entry: TargetEntry) -> Target:
    stored = work.stored
    return Target(
        pk=stored.target_ids.get(entry.key),
        model_id=stored.model_ids[entry.model],
        profile_id=None if entry.profile is None else stored.profile_ids[entry.profile],
        variant_id=None if entry.variant is None else stored.variant_ids[entry.model, entry.variant],
        utilization=entry.utilization,
        tokens_per_sec=entry.tokens_per_sec,
    )
