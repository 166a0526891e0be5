"""Sizing in exact decimals, and which texts are numbers."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sizing.domain.demand import parse_number, parse_rate, parse_utilization, replicas_needed


def needed(tokens: str, per_replica: str, utilization: str = "1", *others: str) -> int:
    return replicas_needed(
        Decimal(tokens), Decimal(per_replica), Decimal(utilization), [Decimal(o) for o in others]
    )


@pytest.mark.parametrize(
    ("tokens", "per_replica", "utilization", "expected"),
    [
        ("5000", "1180.5", "1", 5),
        ("2361", "1180.5", "1", 2),
        ("2361.000001", "1180.5", "1", 3),
        ("2.1", "0.3", "1", 7),
        ("1.08", "0.36", "1", 3),
        ("0.9", "0.36", "0.8", 4),
        ("1", "1000", "1", 1),
        ("0.000001", "999999999", "1", 1),
        ("1000000000000", "0.000001", "0.000001", 10**24),
    ],
)
def test_the_ceiling_is_exact(tokens: str, per_replica: str, utilization: str, expected: int) -> None:
    assert needed(tokens, per_replica, utilization) == expected


def test_replicas_of_other_variants_are_kept_and_serve_their_part() -> None:
    assert needed("3000", "1000", "1", "500", "500") == 4  # two others, 2,000 left for two
    assert needed("3000", "1000", "0.5", "500", "500") == 7  # the others serve 500, 2,500 left for five
    assert needed("100", "1000", "1", "500", "500") == 2  # the others do alone
    assert needed("2000", "1000", "1", "0") == 3  # an unmeasured other serves nothing


rates = st.decimals(min_value="0.000001", max_value="1000000", places=6)
shares = st.decimals(min_value="0.01", max_value=1, places=6)


@given(tokens=rates, per_replica=rates, utilization=shares, others=st.lists(rates, max_size=3))
def test_one_replica_fewer_would_not_do(
    tokens: Decimal, per_replica: Decimal, utilization: Decimal, others: list[Decimal]
) -> None:
    count = replicas_needed(tokens, per_replica, utilization, others)

    def served(replicas: int) -> Fraction:
        mine = replicas - len(others)
        return Fraction(utilization) * (sum(map(Fraction, others)) + mine * Fraction(per_replica))

    assert served(count) >= Fraction(tokens)
    assert count == max(len(others), 1) or served(count - 1) < Fraction(tokens)


@pytest.mark.parametrize("text", ["1", "5000", "0.5", "1e3", "1E+3", "25e-1", "007"])
def test_plain_ascii_numbers_are_read(text: str) -> None:
    assert parse_number(text) == Decimal(text)


NO_NUMBERS = ["", " 1", "1 ", "1\n", "-1", "+1", "1_000", "1,000", ".5", "5.", "1e", "e5", "1e5.0", "1" * 65]
NO_NUMBERS += ["0x10", "NaN", "inf", "Infinity", "１２", "٣"]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_anything_else_is_no_number(text: str) -> None:
    assert parse_number(text) is None


@pytest.mark.parametrize("text", ["0", "0.0", "1e400", "1000000000000.1", "1e13", "1e999999999999999999999"])
def test_a_rate_is_above_0_and_up_to_1e12(text: str) -> None:
    assert parse_rate(text) is None


def test_the_largest_and_the_tiniest_rates_are_rates() -> None:
    assert parse_rate("1e12") == Decimal("1e12")
    tiny = parse_rate("1e-999999999")
    assert tiny is not None
    assert replicas_needed(tiny, Decimal("0.000001"), Decimal("0.000001")) == 1


@pytest.mark.parametrize(("text", "ok"), [("1", True), ("0.000001", True), ("0", False), ("1.000001", False)])
def test_a_utilization_is_in_0_to_1(text: str, ok: bool) -> None:
    assert (parse_utilization(text) is not None) is ok
