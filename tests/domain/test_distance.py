"""What the replicas that a wish needs hold: the largest rate that needs no further one."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sizing.domain.demand import replicas_needed
from sizing.domain.distance import Distance, held

A_TRIFLE = Decimal("1e-40")

rates = st.decimals(min_value="0.000001", max_value=10**12, places=6)


@given(
    asked=rates,
    per_replica=rates,
    utilization=st.decimals(min_value="0.000001", max_value=1, places=6),
    others=st.lists(st.decimals(min_value=0, max_value=10**6, places=6), max_size=3),
)
def test_what_is_needed_serves_all_that_it_holds_and_not_a_trifle_more(
    asked: Decimal, per_replica: Decimal, utilization: Decimal, others: list[Decimal]
) -> None:
    needed = replicas_needed(asked, per_replica, utilization, others)
    holds = held(needed, per_replica, utilization, others)
    assert asked <= holds
    assert replicas_needed(holds, per_replica, utilization, others) == needed
    with localcontext(prec=300):
        beyond = holds + A_TRIFLE
    assert replicas_needed(beyond, per_replica, utilization, others) == needed + 1


@pytest.mark.parametrize(
    ("replicas", "rate", "utilization", "others", "holds"),
    [
        (3, "1180.5", "1", (), "3541.5"),
        (3, "1180.5", "0.9", (), "3187.35"),
        (7, "0.3", "1", (), "2.1"),
        (3, "1180.5", "1", ("900",), "3261"),
        (3, "1180.5", "1", ("0",), "2361"),
        (2, "1180.5", "0.5", ("900", "800"), "850"),
    ],
)
def test_replicas_hold_by_hand(
    replicas: int, rate: str, utilization: str, others: tuple[str, ...], holds: str
) -> None:
    found = held(replicas, Decimal(rate), Decimal(utilization), list(map(Decimal, others)))
    assert found == Decimal(holds)


def test_the_share_is_rounded_down_so_that_only_all_of_it_is_a_hundred_percent() -> None:
    def percent(asked: str) -> Decimal:
        return Distance(3, Decimal("3541.5"), Fraction(asked) / Fraction("3541.5")).percent

    assert percent("3500") == Decimal("98.8")
    assert percent("3541.499999") == Decimal("99.9")
    assert percent("3541.5") == 100
    assert percent("0.001") == 0
