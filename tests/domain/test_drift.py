"""Drift: the last measurement against the median of the five before it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sizing.domain.drift import Drift, drift


def rates(*values: str | int) -> list[Decimal]:
    return [Decimal(value) for value in values]


@pytest.mark.parametrize(
    ("last", "marked"),
    [("110", False), ("110.000001", True), ("90", False), ("89.999999", True), ("100", False)],
)
def test_only_more_than_ten_percent_is_marked(last: str, marked: bool) -> None:
    found = drift(rates(100, 100, 100, 100, 100, last))
    assert found == Drift(Decimal(last), Decimal(100))
    assert found.marked is marked


def test_the_median_is_of_the_five_before_the_last_and_no_others() -> None:
    assert drift(rates(1, 1, 1, 500, 100, 300, 200, 400, 345)) == Drift(Decimal(345), Decimal(300))


def test_one_wild_measurement_among_the_five_does_not_move_the_median() -> None:
    found = drift(rates(100, 101, 9000, 99, 100, 100))
    assert found is not None
    assert found.before == 100
    assert not found.marked


def test_the_share_tells_the_direction() -> None:
    falling = drift(rates(200, 200, 200, 200, 200, 150))
    rising = drift(rates(200, 200, 200, 200, 200, 250))
    assert falling is not None
    assert rising is not None
    assert (falling.share, rising.share) == (Decimal("-0.25"), Decimal("0.25"))


@pytest.mark.parametrize("number", range(6))
def test_fewer_than_six_tell_nothing(number: int) -> None:
    assert drift(rates(*[100] * number)) is None
