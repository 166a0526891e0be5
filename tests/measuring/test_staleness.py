"""Measurements are stale by age or by a cause; lists carry a mark, and only changes are written."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sizing import snapshot
from sizing.domain.catalog import Question
from sizing.measuring.staleness import mark_stale
from sizing.models import BenchProfile, Gpu, InventoryChange, Measurement, Variant
from tests import builders
from tests.builders import DAY_ONE, H100

pytestmark = pytest.mark.django_db

WEEK = timedelta(hours=168)
SHAPE = "4 GPUs, the whole GPU"


@pytest.fixture
def row() -> Measurement:
    return builders.measurement(builders.variant(builders.model()), builders.profile(refresh_every_h=168))


@pytest.fixture
def measured(row: Measurement) -> Measurement:
    """As the desk stores what it measured itself, with the replica that it measured."""
    builders.replica("llama-0", row.variant, builders.node(), (0, 1, 2, 3))
    how = {"gpu_type": H100, "variant_shape": SHAPE, "engine": "vLLM 0.10.2"}
    Measurement.objects.update(**how)
    return row


def mark(row: Measurement) -> str:
    row.refresh_from_db()
    return row.stale_reason


def answer() -> dict[str, Any]:
    question = Question("llama", Decimal(10), profile="chat")
    return snapshot.current().answer(question).as_dict(DAY_ONE)


def test_a_measurement_is_marked_at_the_age_of_its_profile(row: Measurement) -> None:
    assert mark_stale(DAY_ONE + WEEK - timedelta(seconds=1)) == 0
    assert mark(row) == ""
    assert mark_stale(DAY_ONE + WEEK) == 1
    assert mark(row) == "older than 168 h"


def test_a_longer_interval_takes_the_mark_away(row: Measurement) -> None:
    mark_stale(DAY_ONE + WEEK)
    BenchProfile.objects.update(refresh_every_h=200)
    assert mark_stale(DAY_ONE + WEEK) == 1
    assert mark(row) == ""


def test_a_profile_without_an_interval_is_never_stale(row: Measurement) -> None:
    mark_stale(DAY_ONE + WEEK)
    BenchProfile.objects.update(refresh_every_h=None)
    assert mark_stale(DAY_ONE + 100 * WEEK) == 1
    assert mark(row) == ""


def test_nothing_to_mark_writes_nothing(row: Measurement) -> None:
    mark_stale(DAY_ONE + WEEK)
    before = InventoryChange.objects.count()
    assert mark_stale(DAY_ONE + WEEK) == 0
    assert InventoryChange.objects.count() == before


def test_what_did_not_change_is_not_stale(measured: Measurement) -> None:
    Variant.objects.update(engine_seen="vLLM 0.10.2")
    assert mark_stale(DAY_ONE) == 0
    assert not answer()["measurement"]["stale"]


def assert_stale(row: Measurement, reason: str) -> None:
    given = answer()
    assert given["measurement"]["stale"]
    assert f"the measurement of tp4 is stale: {reason}" in given["warnings"]
    assert mark_stale(DAY_ONE) == 1
    assert mark(row) == reason


def test_a_variant_that_changed_makes_its_measurement_stale(measured: Measurement) -> None:
    Variant.objects.update(gpus=2, gpu_memory_mib=40000)
    now = "2 GPUs, 40,000 MiB"
    assert_stale(measured, f"the variant changed: measured with {SHAPE}, now {now}")


def test_other_gpus_make_a_measurement_stale(measured: Measurement) -> None:
    Gpu.objects.update(type="NVIDIA-H200")
    assert_stale(measured, f"the GPU type changed: measured on {H100}, now NVIDIA-H200")


def test_another_spelling_of_the_type_is_the_same_type(measured: Measurement) -> None:
    Gpu.objects.update(type="h100_80gb hbm3")
    assert not answer()["measurement"]["stale"]


def test_without_replicas_the_types_that_the_variant_asks_for_count(measured: Measurement) -> None:
    measured.variant.replicas.all().delete()
    assert not answer()["measurement"]["stale"]
    Variant.objects.update(gpu_types=["NVIDIA-H200"])
    assert_stale(measured, f"the GPU type changed: measured on {H100}, now NVIDIA-H200")


def test_another_engine_makes_a_measurement_stale(measured: Measurement) -> None:
    Variant.objects.update(engine_seen="vLLM 0.11.0")
    assert_stale(measured, "the engine changed: measured with vLLM 0.10.2, now vLLM 0.11.0")


def test_an_engine_that_is_not_known_is_no_other_engine(measured: Measurement) -> None:
    Variant.objects.update(engine_seen="vLLM 0.11.0")
    Measurement.objects.update(engine="")
    assert not answer()["measurement"]["stale"]


def test_a_measurement_by_hand_is_stale_by_age_alone(row: Measurement) -> None:
    Variant.objects.update(engine_seen="vLLM 0.11.0", gpus=2)
    assert not answer()["measurement"]["stale"]


def test_what_a_measurement_warns_of_stands_in_the_answer(row: Measurement) -> None:
    Measurement.objects.update(warnings=[f"other shape {number}" for number in range(7)])
    assert answer()["warnings"] == [
        *(f"the measurement of tp4: other shape {number}" for number in range(5)),
        "the measurement of tp4 has 2 more warnings",
    ]
