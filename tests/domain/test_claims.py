"""What a replica reserves of a GPU, and when two spellings are one type."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sizing.domain.claims import claim_mib, fraction_below_need
from sizing.domain.gpu_types import type_key
from sizing.domain.specs import VariantSpec


def fraction(share: str, size: int | None = None) -> VariantSpec:
    return VariantSpec("v", gpu_memory_mib=size, gpu_memory_fraction=Decimal(share))


@pytest.mark.parametrize(
    ("share", "memory", "claim"),
    [("0.33", 80000, 26400), ("0.9", 81559, 73404), ("1", 81559, 81559), ("0.000001", 10, 1)],
)
def test_a_fraction_is_rounded_up_exactly(share: str, memory: int, claim: int) -> None:
    assert claim_mib(fraction(share), memory) == claim


def test_a_size_is_itself_and_a_whole_gpu_is_all_of_it() -> None:
    assert claim_mib(VariantSpec("v", gpu_memory_mib=20000), 81559) == 20000
    assert claim_mib(VariantSpec("v"), 81559) == 81559


def test_with_both_the_claim_is_the_fraction_and_may_be_below_the_need() -> None:
    assert claim_mib(fraction("0.2", 3769), 16384) == 3277
    assert fraction_below_need(fraction("0.2", 3769), 16384)
    assert not fraction_below_need(fraction("0.3", 3769), 16384)
    assert not fraction_below_need(VariantSpec("v", gpu_memory_mib=3769), 16384)


def test_types_compare_without_vendor_case_and_separators() -> None:
    same = {"NVIDIA-H100-80GB-HBM3", "nvidia h100_80gb hbm3", "H100-80GB-HBM3", "h100 80GB hbm3"}
    assert {type_key(name) for name in same} == {"h100-80gb-hbm3"}
    assert type_key("AMD-Instinct_MI300X") == type_key("instinct mi300x")
    assert type_key("AMD_Instinct_MI300X_OAM") == type_key("Instinct-MI300X") == "instinct-mi300x"
    assert type_key("Instinct MI250 OAM") == "instinct-mi250"
    assert type_key("OAM-Instinct") == "oam-instinct"
    assert type_key("AMD_Instinct_MI300X_OAM-CPX_NPS4") == type_key("Instinct-MI300X-CPX-NPS4")
    assert type_key("Intel-Gaudi3") == "gaudi3"
    assert type_key("NVIDIA-L4") != type_key("NVIDIA-L40")


def test_the_brand_tesla_that_some_drivers_write_makes_no_other_type() -> None:
    assert type_key("NVIDIA-Tesla-T4") == type_key("Tesla-T4") == type_key("T4") == "t4"
    assert type_key("Tesla") == "tesla"
