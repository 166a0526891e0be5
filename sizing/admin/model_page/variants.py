"""A model's variants in words, and as its page lists them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from sizing.admin.base import counted
from sizing.admin.model_page.may import may_see
from sizing.domain.specs import SERVING_STATES
from sizing.models import Replica, ServedModel, Variant
from sizing.templatetags.desk import num


def shape_of(variant: Variant) -> str:
    """`4 GPUs`, or `2 nodes × 8 GPUs`."""
    gpus = f"{num(variant.gpus)} GPU{'s' if variant.gpus > 1 else ''}"
    return f"{num(variant.nodes)} nodes × {gpus}" if variant.nodes > 1 else gpus


def claim_of(variant: Variant) -> str:
    """What a replica reserves on each of its GPUs."""
    share = variant.gpu_memory_fraction
    parts = []
    if share is not None:
        parts.append(num(share * Decimal(100), "% of the GPU"))
    if variant.gpu_memory_mib is not None:
        size = num(variant.gpu_memory_mib, "MiB")
        parts.append(f"at least {size}" if parts else size)
    return ", ".join(parts) or "whole GPU"


def types_of(variant: Variant) -> str:
    """The GPU types that a variant runs on."""
    return ", ".join(map(str, variant.gpu_types)) or "any"


@dataclass(frozen=True, slots=True)
class Way:
    """A line of the table: one way to run a replica. running: how many do so now."""

    variant: Variant
    url: str
    shape: str
    claim: str
    types: str
    needs: tuple[str, ...]
    running: int


def variants_part(request: HttpRequest, model: ServedModel) -> dict[str, Any]:
    """The part of a model's page about its variants, in one query; empty for those who may not look."""
    if not may_see(request, "variant"):
        return {}
    serving = Replica.objects.filter(state__in=SERVING_STATES)
    rows = model.variants.annotate(running=counted(serving, "variant")).order_by("position", "id")
    return {
        "ways": [
            Way(
                variant=row,
                url=reverse("admin:sizing_variant_change", args=[row.pk]),
                shape=shape_of(row),
                claim=claim_of(row),
                types=types_of(row),
                needs=tuple(_needs(row)),
                running=row.running,
            )
            for row in rows
        ]
    }


def _needs(variant: Variant) -> Iterable[str]:
    """What a node must have besides GPUs."""
    for label, value in sorted(variant.node_selector.items()):
        yield f"{label}={value}"
    if variant.topology_key:
        yield f"one {variant.topology_key} for all its nodes"
    if variant.cpu_millis:
        yield f"{num(Decimal(variant.cpu_millis) / 1000)} cores"
    if variant.memory_mib:
        yield f"{num(variant.memory_mib, 'MiB')} of host memory"
    if variant.tolerations:
        number = len(variant.tolerations)
        yield f"tolerates {num(number)} taint{'s' * (number > 1)}"
