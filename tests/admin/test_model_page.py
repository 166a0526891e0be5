"""What a model's page says of its measurements."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from sizing.admin.measured.of_model import failure_of
from sizing.measuring import refreshes
from sizing.models import BenchProfile, Measurement, Replica, Variant
from tests import builders
from tests.admin import sweeps
from tests.admin.test_measurement_page import llama, words

__all__ = ["llama"]


def page(client: Client, variant: Variant) -> str:
    response = client.get(reverse("admin:sizing_servedmodel_change", args=[variant.model_id]))
    assert response.status_code == 200
    return response.content.decode()


def cards(client: Client, variant: Variant) -> dict[str, str]:
    """The text of each card, by its name."""
    body = page(client, variant)
    found = re.findall(r'<section class="desk-card" aria-label="([^"]*)">(.*?)</section>', body, re.DOTALL)
    return {name: words(inside) for name, inside in found}


def measurable(variant: Variant, name: str = "llama-0") -> Replica:
    return builders.replica(name, variant, benchable=True, state="ready", endpoint="http://10.0.0.7/v1")


def history(variant: Variant, profile: BenchProfile, *rates: int) -> None:
    """Measurements a day apart, the last one now."""
    now = timezone.now()
    for days, rate in enumerate(reversed(rates)):
        builders.measurement(variant, profile, rate, at=now - timedelta(days=days))


def test_each_variant_and_profile_shows_the_newest_that_counts(llama: Variant, boss: Client) -> None:
    chat, rag = sweeps.profile(refresh_every_h=24), sweeps.profile("rag")
    sweeps.measured(llama, chat)
    history(llama, rag, 90, 80)
    found = cards(boss, llama)
    assert list(found) == ["tp4 on chat", "tp4 on rag"]
    assert "200 tok/s" in found["tp4 on chat"]
    assert "edge ! stale: older than 24 h" in found["tp4 on chat"]
    assert "200 tok/s; the next level tried, 240, failed." in found["tp4 on chat"]
    assert "80 tok/s 0 s ago, manual" in found["tp4 on rag"].replace("1 s ago", "0 s ago")


def test_the_models_own_profile_is_there_though_nothing_is_measured(llama: Variant, boss: Client) -> None:
    llama.model.default_profile = sweeps.profile()
    llama.model.save()
    (said,) = cards(boss, llama).values()
    assert "? not measured" in said


def test_what_keeps_from_measuring_is_said_once_for_all_cards(llama: Variant, boss: Client) -> None:
    for profile in (sweeps.profile(), builders.profile("rag")):
        history(llama, profile, 90)
    body = boss.get(reverse("admin:sizing_servedmodel_change", args=[llama.model_id])).content.decode()
    assert len(cards(boss, llama)) == 2
    assert body.count("It cannot be measured now: llama (tp4) has no replica to measure. A measurement") == 1


def test_a_model_without_a_profile_says_nothing_of_measurements(llama: Variant, boss: Client) -> None:
    assert cards(boss, llama) == {}


def test_drift_is_marked_beyond_ten_percent_of_the_median_of_the_five_before(
    llama: Variant, boss: Client
) -> None:
    profile = sweeps.profile()
    history(llama, profile, 100, 101, 99, 100, 500, 89)
    (said,) = cards(boss, llama).values()
    assert "↘ drift" in said
    assert "11 % below 100, the median of the five before it." in said
    Measurement.objects.filter(tok_per_sec=89).update(tok_per_sec=90)
    (said,) = cards(boss, llama).values()
    assert "drift" not in said.replace("within 10 % of the median", "")
    assert 'class="desk-chart-median"' in page(boss, llama)


def test_a_measurement_that_met_no_slo_is_no_part_of_the_history(llama: Variant, boss: Client) -> None:
    profile = sweeps.profile()
    history(llama, profile, 100, 110)
    sweeps.measured(llama, profile, "0", slo_met=False, at=timezone.now() + timedelta(seconds=1))
    (said,) = cards(boss, llama).values()
    assert "110 tok/s" in said
    assert "the SLO was not met ; the figure before it counts on." in said
    assert page(boss, llama).count('class="desk-mark desk-mark-pass"') == 3  # two, and the legend's


def test_the_history_has_fifty_measurements_at_most(llama: Variant, boss: Client) -> None:
    history(llama, sweeps.profile(), *range(100, 160))
    assert page(boss, llama).count('class="desk-mark desk-mark-pass"') == 51
    (said,) = cards(boss, llama).values()
    assert "50 measurements from 110 to 159 tok/s." in said


def test_a_failure_stands_beside_the_last_measurement_until_there_is_a_newer_one(
    llama: Variant, boss: Client
) -> None:
    measurable(llama)
    profile = sweeps.profile()
    sweeps.measured(llama, profile)
    run = sweeps.refresh(llama, profile, "failed", error="the replica went away", finished_at=timezone.now())
    (said,) = cards(boss, llama).values()
    assert f"Refresh {run.pk} failed 0 s ago: the replica went away." in said.replace("1 s ago", "0 s ago")
    assert "200 tok/s" in said
    assert "The figure above counts on." in said
    sweeps.measured(llama, profile, at=timezone.now() + timedelta(seconds=1))
    (said,) = cards(boss, llama).values()
    assert "went away" not in said


@pytest.mark.parametrize("measured_after", [-1, 0, 1])
@pytest.mark.parametrize("state", ["done", "failed", "cancelled"])
def test_a_failure_stands_until_a_figure_is_taken(llama: Variant, state: str, measured_after: int) -> None:
    profile, now = sweeps.profile(), timezone.now()
    run = sweeps.refresh(llama, profile, state, finished_at=now)
    history = [builders.measurement(llama, profile, at=now + timedelta(seconds=measured_after))]
    assert failure_of(run, history) == (run if state == "failed" and measured_after <= 0 else None)
    assert failure_of(None, history) is None


REPLICAS: dict[str, tuple[dict[str, Any], ...]] = {
    "none": (),
    "not marked": ({"state": "ready", "endpoint": "http://10.0.0.7/v1"},),
    "not ready": ({"benchable": True, "state": "starting", "endpoint": "http://10.0.0.7/v1"},),
    "no endpoint": ({"benchable": True, "state": "ready"}, {"state": "ready", "endpoint": "http://a/v1"}),
    "one": ({"benchable": True, "state": "ready", "endpoint": "http://10.0.0.7/v1"}, {"state": "failed"}),
}


@pytest.mark.parametrize("replicas", REPLICAS.values(), ids=REPLICAS.keys())
def test_what_can_be_measured_is_what_the_worker_would_take(
    llama: Variant, replicas: tuple[dict[str, Any], ...]
) -> None:
    for number, fields in enumerate(replicas):
        builders.replica(f"r{number}", llama, **fields)
    found = refreshes.measurable([llama])[llama.pk]
    assert list(found.replicas) == [replica.name for replica in refreshes.benchable(llama)]
    assert bool(found.why_not) != bool(found.replicas)


def test_the_page_takes_as_many_queries_for_thirty_measurements_as_for_three(
    llama: Variant, boss: Client
) -> None:
    chat = sweeps.profile()
    history(llama, chat, *[100] * 3)
    measurable(llama)
    page(boss, llama)
    with CaptureQueriesContext(connection) as few:
        page(boss, llama)
    for number in range(9):
        variant = builders.variant(llama.model, f"tp{number + 10}")
        measurable(variant, f"other-{number}")
        profile = sweeps.profile(f"p{number}")
        history(variant, profile, 100, 110, 120)
        sweeps.refresh(variant, profile, "failed", finished_at=timezone.now(), error="x")
    page(boss, llama)
    with CaptureQueriesContext(connection) as many:
        page(boss, llama)
    assert len(many) == len(few) <= 18


def tables(body: str) -> dict[str, list[str]]:
    """The text of each line of each table that scrolls, by its name."""
    found = re.findall(r'aria-label="Table of (\w+)">.*?<tbody>(.*?)</tbody>', body, re.DOTALL)
    return {
        name: [words(row) for row in re.findall(r"<tr>(.*?)</tr>", rows, re.DOTALL)] for name, rows in found
    }


def test_variants_and_replicas_stand_on_the_page_with_where_they_are(llama: Variant, boss: Client) -> None:
    slice_ = builders.variant(
        llama.model,
        "slice",
        1,
        gpu_memory_fraction=Decimal("0.5"),
        gpu_types=[builders.H100],
        node_selector={"zone": "a"},
        cpu_millis=4500,
        tolerations=[{"operator": "Exists"}],
    )
    a1, b7 = builders.node(), builders.node("gpu-b7", schedulable=False)
    b7.gpus.filter(index=1).update(healthy=False)
    builders.replica("llama-0", llama, a1, (0, 1, 2, 3), started_at=timezone.now() - timedelta(days=3))
    builders.replica("llama-1", llama, b7, (0, 1, 2, 3), state="starting", benchable=True)
    builders.replica("llama-2", slice_, a1, (4,), benchable=True, endpoint="http://10.0.0.7/v1")
    builders.replica("llama-3", slice_, state="pending")
    builders.replica("other-0", builders.variant(builders.model("other")))
    llama.model.min_replicas, llama.model.max_replicas = 4, 8
    llama.model.save()
    body = page(boss, llama)
    assert tables(body) == {
        "variants": [
            "tp4 4 GPUs whole GPU any – 2",
            f"slice 1 GPU 50 % of the GPU {builders.H100} zone=a, 4.5 cores, tolerates 1 taint 1",
        ],
        "replicas": [
            "llama-0 tp4 ready gpu-a1 : 0, 1, 2, 3 3 d –",
            "llama-1 tp4 starting gpu-b7 : 0, 1, 2, 3 ! cordoned, GPU 1 unhealthy – benchable, no endpoint",
            "llama-2 slice ready gpu-a1 : 4 – benchable",
            "llama-3 slice pending nowhere yet – –",
        ],
    }
    assert "Replicas 1 pending, 1 starting, 2 ready" in words(body)
    assert "3 serve, at least 4, at most 8; 1 too few." in words(body)
    assert f'<a href="/admin/sizing/node/{b7.pk}/change/">gpu-b7</a>' in body
    assert f'<a href="/admin/sizing/variant/{slice_.pk}/change/">slice</a>' in body


def test_of_many_replicas_the_first_fifty_are_shown_in_as_many_queries_as_one(
    llama: Variant, boss: Client
) -> None:
    node = builders.node(gpus=8)
    counts = []
    for number in (1, 52):
        for one in range(Replica.objects.count(), number):
            builders.replica(f"llama-{one:02}", llama, node, (one % 8,))
        page(boss, llama)
        with CaptureQueriesContext(connection) as queries:
            body = page(boss, llama)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 17
    assert len(tables(body)["replicas"]) == 50
    assert "And 2 more: see Replicas ." in words(body)


def test_a_model_of_which_nothing_is_there_yet_says_what_to_do(boss: Client, viewer: Client) -> None:
    model = builders.model("new")
    url = reverse("admin:sizing_servedmodel_change", args=[model.pk])
    body = words(boss.get(url).content.decode())
    assert "nothing can be asked or measured of this model. Add one : how many GPUs" in body
    assert "None runs. Ask where one would fit, or add one that runs already." in body
    body = words(viewer.get(url).content.decode())
    assert "None runs. Ask where one would fit." in body
    assert "nothing can be asked or measured" not in body  # they may not see variants


def test_what_is_no_llm_offers_no_question(boss: Client) -> None:
    model = builders.model("notebooks", workload="other")
    body = boss.get(reverse("admin:sizing_servedmodel_change", args=[model.pk])).content.decode()
    assert f"/{model.pk}/target/" not in body
    assert "None runs. Add one that runs already." in words(body)


def test_a_figure_links_to_its_question_and_to_the_comparison_with_the_one_before(
    llama: Variant, boss: Client
) -> None:
    history(llama, sweeps.profile(), 100)
    body = page(boss, llama)
    assert f"/admin/sizing/servedmodel/{llama.model_id}/target/?profile=chat&amp;variant=tp4" in body
    assert "/compare/" not in body
    history(llama, BenchProfile.objects.get(), 110)
    first, second = Measurement.objects.order_by("measured_at", "pk")
    assert f"/admin/sizing/measurement/compare/?a={first.pk}&b={second.pk}" in unescape(page(boss, llama))
