"""What a measurement asks of its levels, and what it warns of."""

from __future__ import annotations

import pytest

from sizing.domain.levels import wilson
from sizing.measuring.bench import needed_requests


@pytest.mark.parametrize(("percentile", "needed"), [(50, 4), (90, 35), (95, 73), (99, 381), (99.9, 3838)])
def test_so_many_requests_without_a_violation_prove_a_percentile_and_one_less_does_not(
    percentile: float, needed: int
) -> None:
    assert needed_requests(percentile) == needed
    assert wilson(needed, needed)[0] >= percentile / 100 > wilson(needed - 1, needed - 1)[0]


def test_no_number_of_requests_proves_all_of_them() -> None:
    assert needed_requests(100) == 0
