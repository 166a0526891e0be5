"""Quantities as Kubernetes writes them."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest

from sizing.inventory.kubernetes.quantity import QuantityError, read_quantities, read_quantity

GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("resource", "written", "whole"),
    [
        (GPU, "8", 8),
        (GPU, 8, 8),
        (GPU, 8.0, 8),
        (GPU, Decimal("8"), 8),
        (GPU, "2000m", 2),
        (GPU, "+4", 4),
        (GPU, "0", 0),
        (GPU, "-0", 0),
        ("nvidia.com/gpumem", "20k", 20_000),
        ("nvidia.com/gpumem", "300k", 300_000),
        ("pods", "5k", 5_000),
        ("pods", 110, 110),
        ("cpu", "7910m", 7910),
        ("cpu", "128", 128_000),
        ("cpu", 0.1, 100),
        ("cpu", "1.5", 1500),
        ("cpu", ".5", 500),
        ("cpu", "5.", 5000),
        ("cpu", "100n", 1),
        ("cpu", "1u", 1),
        ("cpu", "1000001u", 1001),
        ("memory", "1.9Ti", 2_089_072_092_775),
        ("memory", "32386524Ki", 33_163_800_576),
        ("memory", "64Gi", 64 * 1024**3),
        ("memory", "1Pi", 1024**5),
        ("memory", "1Ei", 1024**6),
        ("memory", "128974848000m", 128_974_848),
        ("memory", "1500m", 2),
        ("memory", "129e6", 129_000_000),
        ("memory", "129E6", 129_000_000),
        ("memory", "1e-3", 1),
        ("memory", "5E", 5 * 10**18),
        ("memory", "123M", 123_000_000),
        ("memory", "1G", 10**9),
        ("memory", "1T", 10**12),
        ("memory", "1P", 10**15),
        ("ephemeral-storage", "10Mi", 10 * 1024**2),
    ],
)
def test_a_quantity_is_a_whole_number_of_its_unit_rounded_up(resource: str, written: Any, whole: int) -> None:
    assert read_quantity(resource, written) == whole


@pytest.mark.parametrize(
    "written",
    [
        "four",
        "",
        " 8",
        "8 ",
        "1_000",
        "８",
        "٣",
        "NaN",
        "inf",
        "-inf",
        "Infinity",
        "0x10",
        "1,5",
        "1.5.2",
        ".",
        "m",
        "Gi",
        "2K",
        "5ki",
        "5mi",
        "8gb",
        "1e",
        "1e5Ki",
        "1Kim",
        "--1",
        "1e9999",
        "8\n",
        "1" * 65,
        float("nan"),
        float("inf"),
        Decimal("NaN"),
        Decimal("Infinity"),
        True,
        False,
        None,
        [],
        {},
        ["8"],
    ],
)
def test_what_kubernetes_would_not_take_is_no_quantity(written: Any) -> None:
    with pytest.raises(QuantityError, match=r"is no quantity$") as caught:
        read_quantity(GPU, written)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 80


@pytest.mark.parametrize(
    ("resource", "written", "problem"),
    [
        (GPU, "four", "nvidia.com/gpu 'four' is no quantity"),
        (GPU, "-1", "nvidia.com/gpu '-1' is a negative quantity"),
        ("cpu", -2, "cpu -2 is a negative quantity"),
        (GPU, "2.5", "nvidia.com/gpu: an extended resource must be whole (2.5)"),
        (GPU, 2.5, "nvidia.com/gpu: an extended resource must be whole (2.5)"),
        (GPU, "100m", "nvidia.com/gpu: an extended resource must be whole (100m)"),
        (GPU, "1E", "nvidia.com/gpu '1E': no node has more than 10,000 devices"),
        (
            "nvidia.com/mig-1g.10gb",
            10_001,
            "nvidia.com/mig-1g.10gb 10001: no node has more than 10,000 devices",
        ),
        ("google.com/tpu", "20k", "google.com/tpu '20k': no node has more than 10,000 devices"),
        (
            "aws.amazon.com/neuroncore",
            "20k",
            "aws.amazon.com/neuroncore '20k': no node has more than 10,000 devices",
        ),
        ("memory", "10E", "memory '10E' is beyond all sizes"),
        ("memory", "1e999", "memory '1e999' is beyond all sizes"),
        ("memory", 10**4000, "memory " + "1" + "0" * 38 + "… is beyond all sizes"),
    ],
)
def test_an_impossible_quantity_is_told_with_its_resource(resource: str, written: Any, problem: str) -> None:
    with pytest.raises(QuantityError) as caught:
        read_quantity(resource, written)
    assert str(caught.value) == problem


def test_ten_thousand_devices_are_read() -> None:
    assert read_quantity(GPU, "10k") == 10_000


def test_a_mapping_of_quantities_leaves_out_what_is_null() -> None:
    assert read_quantities({"cpu": "1", GPU: None, "pods": 3}) == {"cpu": 1000, "pods": 3}
    assert read_quantities(None) == {}
    assert read_quantities("8") == {}


@pytest.mark.parametrize("name", ["", "gpu\n", "g" * 318])
def test_what_cannot_be_a_resource_is_told(name: str) -> None:
    with pytest.raises(QuantityError, match="is no name of a resource"):
        read_quantities({name: 1})


def test_the_client_is_imported_only_when_a_quantity_is_read() -> None:
    code = (
        "import sys; from sizing.inventory.kubernetes import quantity; "
        "assert 'kubernetes' not in sys.modules; "
        "assert quantity.read_quantity('cpu', '1') == 1000; assert 'kubernetes' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
