"""One line an object: rows with the least that they need."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sizing.models import (
    BenchProfile,
    Gpu,
    Measurement,
    Node,
    Placement,
    Replica,
    ServedModel,
    Target,
    Variant,
)

H100 = "NVIDIA-H100-80GB-HBM3"
H100_MIB = 81559
DAY_ONE = datetime(2026, 1, 1, tzinfo=UTC)


def node(name: str = "gpu-a1", gpus: int = 8, gpu_type: str = H100, **fields: Any) -> Node:
    """A node with GPUs of one type."""
    row = Node.objects.create(name=name, **fields)
    Gpu.objects.bulk_create(Gpu(node=row, index=i, type=gpu_type, memory_mib=H100_MIB) for i in range(gpus))
    return row


def profile(name: str = "chat", **fields: Any) -> BenchProfile:
    """A profile with one limit."""
    return BenchProfile.objects.create(
        **({"name": name, "input_tokens": 1024, "output_tokens": 256, "ttft_ms": 500} | fields)
    )


def model(name: str = "llama", **fields: Any) -> ServedModel:
    """A model without variants."""
    return ServedModel.objects.create(name=name, **fields)


def variant(of: ServedModel, name: str = "tp4", gpus: int = 4, **fields: Any) -> Variant:
    """A whole-GPU variant of a model."""
    return Variant.objects.create(model=of, name=name, gpus=gpus, position=of.variants.count(), **fields)


def measurement(
    of: Variant, on: BenchProfile, rate: str | int = 1000, at: datetime = DAY_ONE, **fields: Any
) -> Measurement:
    """A measurement entered by hand."""
    return Measurement.objects.create(
        variant=of, profile=on, tok_per_sec=Decimal(rate), measured_at=at, **fields
    )


def replica(
    name: str, of: Variant, on: Node | None = None, gpus: tuple[int, ...] = (), **fields: Any
) -> Replica:
    """A replica on some GPUs of one node."""
    row = Replica.objects.create(name=name, variant=of, **fields)
    if on is not None:
        Placement.objects.bulk_create(
            Placement(replica=row, gpu=gpu) for gpu in on.gpus.filter(index__in=gpus)
        )
    return row


def target(of: ServedModel, rate: str | int = 1000, **fields: Any) -> Target:
    """A saved wish."""
    return Target.objects.create(model=of, tokens_per_sec=Decimal(rate), **fields)
