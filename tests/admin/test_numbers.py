from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sizing.templatetags.desk import age, num


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (12345, "12,345"),
        (1180.5, "1,180.5"),
        (5000.0, "5,000"),
        (Decimal("0.300000"), "0.3"),
        (Decimal("1E+3"), "1,000"),
        (-3, "−3"),
        (None, "–"),
        ("", "–"),
        (True, "–"),
        ("many", "–"),
        (float("nan"), "–"),
    ],
)
def test_numbers_have_commas_and_no_trailing_zeros(value: Any, text: str) -> None:
    assert num(value) == text


def test_a_unit_stands_behind_a_thin_space() -> None:
    assert num(81559, "MiB") == "81,559\u202fMiB"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (45, "45\u202fs"),
        (600, "10\u202fmin"),
        (7199, "119\u202fmin"),
        (7200, "2\u202fh"),
        (3 * 86400, "3\u202fd"),
        (None, "–"),
    ],
)
def test_ages_take_the_largest_sensible_unit(seconds: Any, text: str) -> None:
    assert age(seconds) == text
