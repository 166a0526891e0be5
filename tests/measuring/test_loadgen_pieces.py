"""Prompts, arrivals, one request's times, and when the requests seen decide a level."""

from __future__ import annotations

from itertools import islice, pairwise
from math import exp

import pytest

from sizing.domain.levels import Slo
from sizing.measuring.loadgen.arrivals import due_between, due_times
from sizing.measuring.loadgen.prompts import LEADING, Prompts
from sizing.measuring.loadgen.request import Flight
from sizing.measuring.loadgen.stream import Answer
from sizing.measuring.loadgen.summary import nearest_rank
from sizing.measuring.loadgen.tally import Tally, overdue


def test_prompts_are_unique_from_their_first_words_on() -> None:
    prompts = Prompts(seed=3, words=64)
    texts = [prompts.text(number) for number in range(5_000)]
    assert len({tuple(text.split()[:LEADING]) for text in texts}) == 5_000


def test_prompts_have_the_length_that_was_asked() -> None:
    assert [len(Prompts(1, words).text(7).split()) for words in (1, 3, 4, 5, 1_000)] == [1, 3, 4, 5, 1_000]


def test_the_same_seed_gives_the_same_prompts_and_another_gives_others() -> None:
    first = [Prompts(1, 20).text(number) for number in range(100)]
    assert first == [Prompts(1, 20).text(number) for number in range(100)]
    other = [Prompts(2, 20).text(number) for number in range(100)]
    assert not {text[:12] for text in first} & {text[:12] for text in other}


def test_arrivals_are_the_same_for_the_same_seed() -> None:
    first = list(islice(due_times(5.0, 1), 1_000))
    assert first == list(islice(due_times(5.0, 1), 1_000))
    assert first != list(islice(due_times(5.0, 2), 1_000))
    assert all(before < after for before, after in pairwise(first))


def test_gaps_between_arrivals_are_exponential() -> None:
    gaps = sorted(b - a for a, b in pairwise(islice(due_times(4.0, 1), 20_001)))
    assert sum(gaps) / len(gaps) == pytest.approx(0.25, rel=0.02)
    # Kolmogorov-Smirnov: beyond 1.63 / sqrt(n) once in a hundred.
    worst = max(abs((i + 0.5) / 20_000 - (1 - exp(-4 * gap))) for i, gap in enumerate(gaps))
    assert worst < 1.63 / 20_000**0.5


def test_arrivals_that_are_due_in_a_window_are_counted() -> None:
    times = list(islice(due_times(10.0, 1), 500))
    assert due_between(10.0, 1, 3.0, 9.0) == sum(3.0 <= at < 9.0 for at in times)


def flight(*times: float, tokens: int | None = None, ended: float | None = None) -> Flight:
    """A request sent at second 10, with a token at each of these seconds."""
    answer = Answer(32)
    answer.times.extend(times)
    answer.output_tokens = tokens
    return Flight(planned=10.0, sent=10.0, answer=answer, most_tokens=32, ended=ended)


def test_tpot_leaves_out_the_first_token_and_counts_tokens_not_chunks() -> None:
    done = flight(10.5, 11.0, 12.5, tokens=11, ended=12.5)
    assert (done.ttft_ms, done.e2e_ms, done.tpot_ms) == (500.0, 2500.0, 200.0)


def test_without_usage_chunks_that_carry_tokens_are_counted() -> None:
    assert (flight(10.5, 11.0, 12.5).tokens, flight(10.5, 11.0, 12.5).tpot_ms) == (3, 1000.0)


def test_a_single_token_has_no_tpot_to_miss_the_slo_by() -> None:
    assert flight(10.5, tokens=1).tpot_ms is None
    assert flight(10.5, tokens=1).meets(Slo(itl_ms=1))
    assert not flight(10.5, tokens=1).meets(Slo(ttft_ms=499))


@pytest.mark.parametrize(
    ("slo", "since"),
    [(Slo(ttft_ms=500), 10.5), (Slo(e2e_ms=3_000), 13.0), (Slo(itl_ms=50), 13.1)],
)
def test_a_request_that_still_flies_is_overdue_when_its_limit_is_surely_missed(
    slo: Slo, since: float
) -> None:
    # 31 gaps of 50 ms are 1.55 s after the first token at the latest.
    flying = flight() if slo.ttft_ms else flight(11.55)
    assert not overdue(flying, slo, since)
    assert overdue(flying, slo, since + 0.01)


def test_a_first_token_in_time_is_never_overdue_for_ttft() -> None:
    assert not overdue(flight(10.4), Slo(ttft_ms=500), 100.0)


def test_ten_without_a_violation_decide_a_level_that_does_not_decide_the_search() -> None:
    assert not Tally(completed=9, conform=9).decides(95, thorough=False, least=10)
    assert Tally(completed=10, conform=10).decides(95, thorough=False, least=10)


def test_seventy_three_without_a_violation_resolve_a_thorough_level() -> None:
    assert not Tally(completed=72, conform=72).decides(95, thorough=True, least=10)
    assert Tally(completed=73, conform=73).decides(95, thorough=True, least=10)


def test_with_a_violation_a_quick_level_goes_on_until_it_is_resolved() -> None:
    assert not Tally(completed=30, conform=29).decides(95, thorough=False, least=10)
    assert Tally(completed=10, conform=2).decides(95, thorough=False, least=10)


def test_overdue_requests_count_towards_a_fail() -> None:
    assert Tally(overdue=10).decides(95, thorough=True, least=10)
    assert Tally(overdue=10, flying=3).surely_fails(95, thorough=True, least=10)
    assert not Tally(completed=4, conform=4, overdue=6, flying=200).surely_fails(95, thorough=True, least=10)


def test_a_level_that_passes_does_not_surely_fail() -> None:
    assert not Tally(completed=100, conform=100).surely_fails(95, thorough=True, least=10)


def test_one_failure_among_few_decides_nothing_and_three_of_ten_do() -> None:
    assert not Tally(completed=9, conform=9, failed=1).decides(95, thorough=False, least=10)
    assert not Tally(completed=90, conform=90, failed=1).decides(95, thorough=True, least=10)
    assert Tally(completed=130, conform=130, failed=1).decides(95, thorough=True, least=10)
    assert Tally(completed=7, conform=7, failed=3).decides(95, thorough=False, least=10)


def test_a_nearest_rank_percentile_is_within_a_limit_exactly_when_that_share_is() -> None:
    hundred = [float(n) for n in range(1, 101)]
    assert [nearest_rank(hundred, p) for p in (50.0, 95.0, 99.0, 100.0)] == [50.0, 95.0, 99.0, 100.0]
    assert nearest_rank([1.0, 2.0, 3.0], 95.0) == 3.0
    assert nearest_rank([], 95.0) is None
