"""The page of a measurement: its figure, how it was taken, its levels; read-only where it was measured."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from sizing.domain.levels import Judged, Level, Slo, Spread, Verdict, judge
from sizing.models import Measurement, Refresh, Variant
from tests import builders
from tests.admin import sweeps
from tests.admin.cluster import person
from tests.admin.test_every_page import HOSTILE


@pytest.fixture
def llama(db: None) -> Variant:
    return builders.variant(builders.model("llama"), "tp4", 4)


def page(client: Client, measurement: Measurement) -> str:
    response = client.get(reverse("admin:sizing_measurement_change", args=[measurement.pk]))
    assert response.status_code == 200
    return response.content.decode()


def words(body: str) -> str:
    """The page's text without its elements."""
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


def test_the_figure_is_one_sentence_with_its_bracket(llama: Variant, boss: Client) -> None:
    body = page(boss, sweeps.measured(llama, sweeps.profile()))
    assert "One replica serves 200 tok/s on chat." in words(body)
    assert "200 tok/s; the next level tried, 240, failed." in words(body)
    assert '<span class="desk-badge desk-badge-edge">edge</span>' in body


def test_how_it_was_measured_stands_beside_it(llama: Variant, boss: Client) -> None:
    now = timezone.now()
    run = sweeps.refresh(
        llama, sweeps.profile(), "done", started_at=now - timedelta(minutes=3), finished_at=now
    )
    body = words(page(boss, sweeps.measured(llama, run.profile, refresh=run, warnings=["few_requests: 60"])))
    for said in (
        "few_requests: 60",
        "tp4, measured with 4 GPUs, the whole GPU",
        "95 % of the requests: TTFT ≤ 500 ms, TPOT ≤ 50 ms",
        "1,024 tokens in, 256 out, fixed concurrency, seed 17",
        "2026-01-01 00:00 UTC",
        f"by refresh {run.pk} in 3 min",
        "builtin 0.1.0",
        "vLLM 0.11.2",
        f"llama-0 on {builders.H100}",
    ):
        assert said in body, said


def test_every_level_is_a_row_with_its_verdict_and_why(llama: Variant, boss: Client) -> None:
    body = page(boss, sweeps.measured(llama, sweeps.profile()))
    rows = [words(row) for row in re.findall(r"<tr[^>]*>(?:(?!</tr>).)*</tr>", body, re.DOTALL)]
    (deciding,) = [row for row in rows if "gives the figure" in row]
    assert deciding == (
        "4 streams gives the figure pass 96 of 96 requests (100 %) met the SLO 200 96 0 6.25"
        " 110 100 200 250 32 30 40 48 1,800 1,750 2,000 2,100 #2"
    )
    (failed,) = [row for row in rows if row.startswith("8 streams")]
    assert failed.startswith(
        "8 streams fail 48 of 96 requests (50 %) met the SLO, 95 % must; TPOT p95 150 ms, limit 50 ms"
        " ! percentiles are odd 240 96 0 (1 × 429)"
    )


def test_both_charts_stand_with_the_bracket_and_the_slo(llama: Variant, boss: Client) -> None:
    body = page(boss, sweeps.measured(llama, sweeps.profile()))
    assert body.count('role="img"') == 2
    assert body.count('class="desk-chart-bracket"') == 2
    assert body.count('class="desk-chart-slo"') == 1
    assert "<title>4 streams: 200 tok/s, pass</title>" in body
    assert "<title>8 streams: TPOT p95 150 ms of 50, fail</title>" in body
    # TPOT: 40 of 50 ms is 80 % on an axis that ends at 250 %, and 150 ms lies beyond it.
    assert 'cy="189.6"' in body
    assert body.count('class="desk-chart-beyond"') == 1
    assert "meets the SLO" in body
    assert "invalid: says nothing" not in body


def test_a_floor_says_so_and_shades_nothing(llama: Variant, boss: Client) -> None:
    row = sweeps.measured(llama, sweeps.profile(), bound="floor", bracket="")
    row.levels.filter(verdict="fail").delete()
    body = page(boss, row)
    assert "One replica serves at least 200 tok/s on chat." in words(body)
    assert "Measure with higher loads" in body
    assert "desk-chart-bracket" not in body


def test_an_slo_that_was_never_met_counts_for_nothing(llama: Variant, boss: Client) -> None:
    row = sweeps.measured(
        llama,
        sweeps.profile(),
        "0",
        bound=None,
        slo_met=False,
        bracket="not met at the lowest load tried: why",
    )
    body = words(page(boss, row))
    assert "One replica does not meet the SLO of chat, not even at the lowest load tried." in body
    assert "does not count" in body
    assert "Use a faster variant, or a profile with higher limits, and measure again." in body


def test_levels_of_a_file_without_loads_or_percentiles_are_shown_too(llama: Variant, boss: Client) -> None:
    row = builders.measurement(llama, sweeps.profile(), "90", generator="vllm bench")
    poor = Level(tok_per_sec=90.0, completed=20, ttft=Spread(None, {50.0: 100.0, 99.0: 300.0}))
    sweeps.keep(row, [judge(poor, Slo(ttft_ms=500))])
    body = page(boss, row)
    assert "no limit of load" in body
    assert "1 without a told load stands in the table only." in words(body)
    assert '<svg class="desk-chart"' not in body


def test_open_and_closed_loop_in_one_measurement_give_no_figure_in_the_chart(
    llama: Variant, boss: Client
) -> None:
    row = builders.measurement(llama, sweeps.profile(), "90", generator="x")
    other = sweeps.level(4.0, 90, 20, arrival="poisson")
    sweeps.keep(row, [*sweeps.sweep(), judge(other, sweeps.SLO)])
    body = page(boss, row)
    assert "open and closed loop are mixed, so there is no figure" in body
    assert "desk-chart-ring" not in body


def test_what_was_measured_cannot_be_written(llama: Variant, boss: Client) -> None:
    row = sweeps.measured(llama, sweeps.profile())
    body = page(boss, row)
    assert 'name="tok_per_sec"' not in body
    assert 'name="_save"' not in body
    url = reverse("admin:sizing_measurement_change", args=[row.pk])
    form = {"variant": llama.pk, "profile": row.profile_id, "tok_per_sec": "9999", "source": "me"}
    assert boss.post(url, form | {"measured_at_0": "2026-01-01", "measured_at_1": "00:00"}).status_code == 403
    row.refresh_from_db()
    assert (str(row.tok_per_sec), row.source) == ("200.000000", "builtin")
    delete = reverse("admin:sizing_measurement_delete", args=[row.pk])
    assert boss.post(delete, {"post": "yes"}).status_code == 302
    assert not Measurement.objects.exists()


def test_what_was_entered_by_hand_can_be_written(llama: Variant, boss: Client) -> None:
    row = builders.measurement(llama, sweeps.profile(), "200")
    body = page(boss, row)
    assert "entered by hand" in body
    assert 'name="tok_per_sec"' in body
    form = {"variant": llama.pk, "profile": row.profile_id, "tok_per_sec": "250.5", "source": "manual"}
    form |= {"measured_at_0": "2026-01-01", "measured_at_1": "00:00", "slo_met": "on"}
    url = reverse("admin:sizing_measurement_change", args=[row.pk])
    assert boss.post(url, form).status_code == 302
    row.refresh_from_db()
    assert str(row.tok_per_sec) == "250.500000"


def test_an_old_one_is_stale_though_it_is_not_marked_yet(llama: Variant, boss: Client) -> None:
    body = page(boss, sweeps.measured(llama, sweeps.profile(refresh_every_h=168)))
    assert "stale: older than 168 h" in body


def test_a_viewer_sees_the_run_only_with_permission_and_no_button(llama: Variant) -> None:
    builders.replica("llama-0", llama, benchable=True, state="ready", endpoint="http://10.0.0.7/v1")
    row = sweeps.measured(llama, sweeps.profile())
    row.refresh = sweeps.refresh(llama, row.profile, "done")
    row.save()
    client = Client()
    client.force_login(person("looker", "view_measurement"))
    body = page(client, row)
    assert reverse("admin:sizing_refresh_change", args=[row.refresh.pk]) not in body
    assert "Measure again" not in body
    client.force_login(person("measurer", "view_measurement", "view_refresh", "add_refresh"))
    body = page(client, row)
    assert reverse("admin:sizing_refresh_change", args=[row.refresh.pk]) in body
    assert "Measure again" in body


def test_text_with_markup_is_escaped(llama: Variant, boss: Client) -> None:
    names = ("source", "bracket", "engine", "generator", "replica_name", "gpu_type", "variant_shape")
    fields: dict[str, Any] = dict.fromkeys(names, HOSTILE)
    workload = {"arrival": HOSTILE, "input_tokens": HOSTILE, "seed": HOSTILE}
    row = sweeps.measured(llama, sweeps.profile(), **fields, warnings=[HOSTILE], workload=workload)
    odd = sweeps.level(4.0, 200, 20, warnings=(HOSTILE,), failures={HOSTILE: 1})
    sweeps.keep(row, [Judged(odd, Verdict.PASS, HOSTILE)])
    body = page(boss, row)
    assert "alert(1)" in body
    assert HOSTILE not in body


def test_thirty_levels_take_as_many_queries_as_three(llama: Variant, boss: Client) -> None:
    row = sweeps.measured(llama, sweeps.profile())
    page(boss, row)
    with CaptureQueriesContext(connection) as few:
        page(boss, row)
    sweeps.keep(row, [judge(sweeps.level(load, 10, 10), sweeps.SLO) for load in range(10, 37)])
    with CaptureQueriesContext(connection) as many:
        page(boss, row)
    assert len(many) == len(few) <= 12


def test_refreshing_measurements_asks_first_and_queues_each_pair_once(llama: Variant, boss: Client) -> None:
    builders.replica("llama-0", llama, benchable=True, state="ready", endpoint="http://10.0.0.7/v1")
    profile = sweeps.profile()
    rows = [builders.measurement(llama, profile, rate) for rate in (100, 110, 120)]
    other = builders.measurement(builders.variant(llama.model, "tp8", 8), profile)
    data = {"action": "refresh_now", "_selected_action": [str(row.pk) for row in [*rows, other]]}
    url = reverse("admin:sizing_measurement_changelist")
    body = words(boss.post(url, data).content.decode())
    assert "Take 1 measurement anew?" in body
    assert "llama (tp4) on chat: measured on llama-0" in body
    assert "llama (tp8) on chat: left out, llama (tp8) has no replica to measure" in body
    assert not Refresh.objects.exists()
    assert boss.post(url, data | {"confirmed": "yes"}).status_code == 302
    run = Refresh.objects.get()
    assert (run.variant, run.profile, run.trigger, run.requested_by) == (
        llama,
        profile,
        "admin",
        run.requested_by,
    )
    assert str(run.requested_by) == "boss"


def test_those_who_may_not_measure_are_offered_no_action_and_can_do_none(llama: Variant) -> None:
    builders.replica("llama-0", llama, benchable=True, state="ready", endpoint="http://10.0.0.7/v1")
    row = builders.measurement(llama, sweeps.profile())
    client = Client()
    client.force_login(person("looker", "view_measurement", "change_measurement"))
    url = reverse("admin:sizing_measurement_changelist")
    assert "refresh_now" not in client.get(url).content.decode()
    client.post(url, {"action": "refresh_now", "_selected_action": [str(row.pk)], "confirmed": "yes"})
    assert not Refresh.objects.exists()
