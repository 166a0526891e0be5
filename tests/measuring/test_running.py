"""A refresh at work on a real simulated replica: what is stored, and what a failure leaves alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from sizing import snapshot
from sizing.domain.catalog import Question, QuestionError
from sizing.measuring import bench, engines, refreshes, running
from sizing.models import BenchLevel, BenchProfile, MeasuredNode, Measurement, Refresh, Variant
from tests import builders
from tests.builders import H100
from tests.measuring.simulated import simulated_replica

pytestmark = pytest.mark.django_db

QUICK = {"level_s": 2, "highest": 2, "most_levels": 1}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with simulated_replica(t0=3, a=0.2, model="llama") as address:
        yield address


def queued(url: str, options: dict[str, Any] | None = None, **fields: Any) -> Refresh:
    """A refresh of the only variant, with a replica at an address."""
    shape = {"input_tokens": 16, "output_tokens": 8, "arrival": "concurrency"}
    on = builders.profile("chat", **shape | {"ttft_ms": 200, "itl_ms": 50} | fields)
    variant = builders.variant(builders.model(default_profile=on), gpus=1)
    builders.replica("llama-0", variant, builders.node(), (0,), benchable=True, endpoint=url)
    return Refresh.objects.create(
        variant=variant, profile=on, trigger="api", options=QUICK if options is None else options
    )


def ran(row: Refresh) -> Refresh:
    assert running.run(row.pk)
    row.refresh_from_db()
    assert not MeasuredNode.objects.exists()
    return row


def test_what_was_measured_is_stored_with_how(url: str) -> None:
    row = ran(queued(url))
    measured = Measurement.objects.get()
    assert (row.state, row.progress, row.message, row.error) == ("done", 100, measured.bracket, "")
    assert measured.refresh == row
    assert (measured.source, measured.bound, measured.slo_met) == ("builtin", "floor", True)
    assert measured.generator.startswith("builtin ")
    assert measured.engine.startswith("vLLM ")
    assert (measured.replica_name, measured.gpu_type) == ("llama-0", H100)
    assert measured.variant_shape == "1 GPU, the whole GPU"
    assert measured.workload["input_tokens"], measured.workload["output_tokens"] == (16, 8)
    assert (measured.workload["arrival"], measured.workload["seed"]) == ("concurrency", row.pk)
    of_level = BenchLevel.objects.get().judged.level.tok_per_sec
    assert of_level is not None
    assert measured.tok_per_sec == round(Decimal(of_level), 6)
    assert measured.bracket == f"at least {of_level:,.0f} tok/s; no higher level was tried"
    assert measured.warnings[0].startswith("few_requests: ")


def test_every_level_is_kept_and_belongs_to_the_measurement(url: str) -> None:
    row = ran(queued(url, QUICK | {"most_levels": 2}))
    levels = list(BenchLevel.objects.order_by("position"))
    assert [level.position for level in levels] == list(range(1, len(levels) + 1))
    assert len(levels) == 2
    assert {level.measurement for level in levels} == {Measurement.objects.get()}
    assert not row.levels.exists()
    first = levels[0].judged
    assert (first.level.arrival, first.level.load, first.verdict) == ("concurrency", 1, "pass")
    assert first.level.sent is not None
    assert first.level.sent >= 10
    assert first.level.tpot.at[50.0] > 2.5  # a step takes 3.2 ms
    assert {50.0, 95.0, 99.0} <= first.level.ttft.at.keys()


def test_a_measurement_counts_at_once_in_the_answer(url: str) -> None:
    ran(queued(url))
    answer = snapshot.current().answer(Question("llama", Decimal(1000)))
    assert answer.count.measurement.tok_per_sec == Measurement.objects.get().tok_per_sec


def test_without_saving_the_levels_stay_with_the_run(url: str) -> None:
    row = queued(url)
    Refresh.objects.update(save_result=False)
    ran(row)
    assert (row.state, Measurement.objects.count()) == ("done", 0)
    assert row.levels.exists()


def test_an_slo_that_one_request_alone_misses_counts_as_not_measured_with_that_reason(url: str) -> None:
    row = ran(queued(url, itl_ms=1))
    measured = Measurement.objects.get()
    assert (row.state, measured.slo_met, measured.bound) == ("done", False, None)
    assert measured.tok_per_sec == 0
    assert measured.bracket.startswith("not met at the lowest load tried: 0 of ")
    with pytest.raises(QuestionError) as refused:
        snapshot.current().answer(Question("llama", Decimal(10)))
    day = measured.measured_at.date()
    assert refused.value.message == (
        "llama has not been measured; run `manage.py bench llama --save` first"
        f" (tp4 was measured on {day}, and did not meet the SLO of chat at the lowest load tried)"
    )


def test_an_unmet_slo_does_not_replace_the_last_valid_measurement_but_warns(url: str) -> None:
    row = queued(url, itl_ms=1)
    builders.measurement(row.variant, row.profile, 700)
    ran(row)
    answer = snapshot.current().answer(Question("llama", Decimal(10)))
    assert answer.count.measurement.tok_per_sec == 700
    assert any(
        "did not meet the SLO of chat at the lowest load tried; the figure is older" in warning
        for warning in answer.as_dict(Measurement.objects.latest("measured_at").measured_at)["warnings"]
    )


def assert_failed(row: Refresh, error: str) -> None:
    """It failed with a reason that begins so, and the last valid measurement is as it was."""
    before = list(Measurement.objects.values())
    assert ran(row).state == "failed"
    assert row.error.startswith(error), row.error
    assert "\n" not in row.error
    assert list(Measurement.objects.values()) == before


def test_a_replica_that_is_not_there_fails_the_refresh(url: str) -> None:
    row = queued("http://127.0.0.1:9/v1")
    builders.measurement(row.variant, row.profile)
    assert_failed(row, "http://127.0.0.1:9/v1/models cannot be reached: ")


def test_an_address_outside_the_networks_is_never_connected_to(url: str, settings: Any) -> None:
    settings.ENDPOINT_NETWORKS = ["10.0.0.0/8"]
    assert_failed(queued(url), "127.0.0.1 ")


@pytest.mark.parametrize(
    "fault", ["busy", "html", "hang=1", "endless", "empty", "redirect=http://127.0.0.1:9/"]
)
def test_a_replica_that_cannot_answer_one_request_fails_the_refresh(fault: str) -> None:
    with simulated_replica(model="llama", faults=[fault]) as faulty:
        row = queued(faulty)
        builders.measurement(row.variant, row.profile)
        Refresh.objects.update(options={"level_s": 2, "budget_s": 5})
        assert_failed(row, "")
        assert row.error


def test_the_only_model_that_a_replica_serves_is_measured_under_its_own_name() -> None:
    with simulated_replica(t0=3, a=0.2, model="llama-fp8") as other:
        assert ran(queued(other)).state == "done"


def test_a_wish_to_cancel_ends_it_and_keeps_the_finished_levels(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = queued(url, QUICK | {"most_levels": 3})
    told = running.RowObserver.level

    def cancel_after(self: running.RowObserver, position: int, judged: Any) -> bool:
        goes_on = told(self, position, judged)
        Refresh.objects.update(cancel_requested=True)
        return goes_on

    monkeypatch.setattr(running.RowObserver, "level", cancel_after)
    assert ran(row).state == "cancelled"
    assert row.levels.count() == 1
    assert not Measurement.objects.exists()


def test_a_replica_that_is_unmarked_meanwhile_is_measured_no_further(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = queued(url)
    monkeypatch.setattr(refreshes, "still_benchable", lambda claim: False)
    assert_failed(row, "llama-0 may no longer be measured: it changed meanwhile")


def test_an_error_of_the_desk_itself_is_said_in_the_row(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = queued(url)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(bench, "measure", broken)
    with pytest.raises(ZeroDivisionError):
        running.run(row.pk)
    row.refresh_from_db()
    assert (row.state, row.error) == ("failed", running.BROKE_OFF)
    assert not MeasuredNode.objects.exists()


def test_the_engine_that_runs_now_is_looked_at(url: str) -> None:
    ran(queued(url))
    Variant.objects.update(engine_seen="vLLM 0.1")
    assert engines.look() == 1
    assert engines.look() == 0
    assert Variant.objects.get().engine_seen == Measurement.objects.get().engine


def test_an_engine_that_is_told_in_part_is_no_news() -> None:
    with simulated_replica(t0=3, a=0.2, model="llama", faults=["slow_version=30"]) as slow:
        queued(slow)
        Variant.objects.update(engine_seen="vLLM 0.1")
        assert engines.look() == 0
        assert Variant.objects.get().engine_seen == "vLLM 0.1"


def test_no_option_goes_beyond_the_highest_load_of_the_desk(url: str, settings: Any) -> None:
    settings.BENCH = replace(settings.BENCH, max_streams=4)
    row = queued(url, {"lowest": 7, "highest": 9})
    assert ran(row).state == "failed"
    assert row.error == "no load lies between 7 and 4, the highest allowed"


def test_one_token_has_no_time_between_tokens(url: str) -> None:
    row = ran(queued(url, output_tokens=1, ttft_ms=None))
    assert row.error == "an answer of one token has no time between tokens; limit another latency"


def test_a_raised_lowest_load_that_fails_is_not_kept_as_a_measurement(url: str) -> None:
    row = ran(queued(url, QUICK | {"lowest": 2}, itl_ms=1))
    assert (row.state, Measurement.objects.count()) == ("done", 0)
    assert row.message.startswith("not met at the lowest load tried: ")


def test_a_replica_that_does_not_answer_changes_no_engine(url: str) -> None:
    queued("http://127.0.0.1:9/v1")
    Variant.objects.update(engine_seen="vLLM 0.1")
    assert engines.look() == 0
    assert Variant.objects.get().engine_seen == "vLLM 0.1"
    assert BenchProfile.objects.count() == 1
