"""What Prometheus is told: the numbers of the fleet, at a cost that does not grow with its rows."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from sizing import tally
from sizing.api.metrics.table import METRICS, with_table
from sizing.models import Measurement, Refresh, Target, WorkerBeat
from sizing.services.watching import capacity
from tests import builders

DEPLOY = settings.BASE_DIR / "deploy/prometheus"
DOCUMENT = settings.BASE_DIR / "docs/watching.md"


@pytest.fixture
def prometheus(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("prometheus"))
    return client


def values(client: Client) -> dict[str, dict[tuple[str, ...], float]]:
    """The values of each metric, by their labels' values in the order of the labels' names."""
    text = client.get("/metrics").content.decode()
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(value for _, value in sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def fleet(model: str = "llama", rate: str = "2500") -> Target:
    """A model on a node of four GPUs that runs one of the three replicas of a GPU that its target needs."""
    profile = builders.profile(f"of {model}", refresh_every_h=Decimal(24))
    made = builders.model(model, default_profile=profile)
    variant = builders.variant(made, "x1", gpus=1)
    builders.replica(f"{model}-0", variant, builders.node(f"node of {model}", gpus=4), gpus=(0,))
    builders.measurement(variant, profile, at=timezone.now() - timedelta(hours=25))
    return builders.target(made, rate)


def test_models_measurements_and_targets_in_numbers(prometheus: Client) -> None:
    target = fleet()
    unmeasured = builders.model("new")
    builders.target(unmeasured)
    found = values(prometheus)
    of, on = ("llama", "of llama", "x1"), ("llama", "of llama", str(target.pk), "x1")
    assert found["llmgw_model_current_replicas"] == {("llama",): 1, (unmeasured.name,): 0}
    assert found["llmgw_model_measured"] == {("llama",): 1, (unmeasured.name,): 0}
    assert found["llmgw_model_free_room_replicas"] == {of: 3}
    assert found["llmgw_model_replica_tokens_per_second"] == {of: 1000}
    assert found["llmgw_model_current_tokens_per_second"] == {of: 1000}
    assert found["llmgw_measurement_stale"] == {of: 1}
    assert 25 * 3600 <= found["llmgw_measurement_age_seconds"][of] < 25 * 3600 + 60
    assert found["llmgw_target_tokens_per_second"] == {on: 2500}
    assert found["llmgw_target_needed_replicas"] == {on: 3}
    assert found["llmgw_target_current_replicas"] == {on: 1}
    assert found["llmgw_target_missing_replicas"] == {on: 2}
    assert found["llmgw_target_free_room_replicas"] == {on: 3}
    assert found["llmgw_target_fits"] == {on: 1}
    assert {labels for labels, number in found["llmgw_targets"].items() if number} == {
        ("fits",),
        ("unmeasured",),
    }


def test_a_mark_makes_a_young_measurement_stale(prometheus: Client) -> None:
    fleet()
    Measurement.objects.update(measured_at=timezone.now(), stale_reason="")
    assert set(values(prometheus)["llmgw_measurement_stale"].values()) == {0}
    Measurement.objects.update(stale_reason="the engine changed")
    assert set(values(prometheus)["llmgw_measurement_stale"].values()) == {1}


@pytest.mark.parametrize(("rate", "fits"), [("4000", 1), ("4001", 0)])
def test_whether_a_target_fits(prometheus: Client, rate: str, fits: int) -> None:
    fleet(rate=rate)
    assert list(values(prometheus)["llmgw_target_fits"].values()) == [fits]


def test_no_scrape_begins_a_long_search(prometheus: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    target = fleet(rate="4001")
    monkeypatch.setattr(capacity, "verdict", lambda found: None)
    assert values(prometheus)["llmgw_targets"]["blocked",] == 1
    monkeypatch.setattr(capacity, "REPLICAS_SEARCHED", 0)
    Target.objects.filter(pk=target.pk).update(tokens_per_sec=Decimal(4002))
    found = values(prometheus)
    assert [str(value) for value in found["llmgw_target_fits"].values()] == ["nan"]
    assert found["llmgw_targets"]["open",] == 1


def test_background_work_in_numbers(prometheus: Client) -> None:
    variant, profile = builders.variant(builders.model()), builders.profile()
    now = timezone.now()
    rows = [
        Refresh.objects.create(variant=variant, profile=profile, trigger="api", state=state)
        for state in ("failed", "failed", "done", "queued")
    ]
    Refresh.objects.filter(pk=rows[0].pk).update(queued_at=now - timedelta(hours=25))
    Refresh.objects.filter(pk=rows[3].pk).update(queued_at=now - timedelta(hours=2))
    WorkerBeat.objects.create(name="a@x", seen_at=now, queues=["desk"])
    WorkerBeat.objects.create(name="b@x", seen_at=now - timedelta(hours=1), queues=["measuring"])
    found = values(prometheus)
    states = {state: number for (state,), number in found["llmgw_refreshes_last_day"].items() if number}
    assert states == {"failed": 1, "done": 1, "queued": 1}
    assert found["llmgw_queue_waiting"] == {("desk",): 0, ("measuring",): 1}
    assert 7200 <= found["llmgw_queue_oldest_seconds"]["measuring",] < 7260
    assert found["llmgw_workers"] == {("desk",): 1, ("measuring",): 0}
    assert 3600 <= found["llmgw_worker_seen_seconds"]["b@x",] < 3660
    assert found["llmgw_broker_up"] == {(): 1}


def test_the_queries_do_not_grow_with_the_rows(prometheus: Client) -> None:
    def queries() -> int:
        values(prometheus)
        with CaptureQueriesContext(connection) as asked:
            values(prometheus)
        return len(asked)

    fleet()
    few = queries()
    for number in range(5):
        fleet(f"model {number}")
    assert queries() == few == (15 if connection.vendor == "sqlite" else 16)


def test_names_are_escaped(prometheus: Client) -> None:
    fleet('a"b\\c')
    assert values(prometheus)["llmgw_model_measured"] == {('a"b\\c',): 1}


@pytest.mark.parametrize(("names", "status"), [(("servedmodel",), 403), (("servedmodel", "target"), 200)])
def test_it_is_for_those_who_may_view_models_and_targets(
    db: None, names: tuple[str, ...], status: int
) -> None:
    user = User.objects.create_user("eve")
    for name in names:
        user.user_permissions.add(Permission.objects.get(codename=f"view_{name}"))
    client = Client()
    client.force_login(user)
    assert client.get("/metrics").status_code == status


def test_what_is_counted_or_told_is_in_the_table(prometheus: Client) -> None:
    fleet()
    prometheus.get("/healthz")
    told = {re.sub(r"_(bucket|count|sum)$", "", name) for name in values(prometheus)}
    only_at_times = {name for name in METRICS if name.startswith(("llmgw_cluster_", "llmgw_answers_"))}
    assert told | only_at_times == set(METRICS) - {"llmgw_worker_seen_seconds"}


def test_the_document_holds_the_table_and_names_every_alert() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    assert with_table(document) == document, "python -m sizing.api.metrics.table docs/watching.md"
    alerts = re.findall(r"alert: (\w+)", (DEPLOY / "alerts.yml").read_text(encoding="utf-8"))
    assert [name for name in alerts if f"`{name}`" not in document] == []


def test_alerts_ask_only_for_metrics_that_there_are() -> None:
    asked: Any = re.findall(r"llmgw_\w+", (DEPLOY / "alerts.yml").read_text(encoding="utf-8"))
    assert {re.sub(r"_bucket$", "", name) for name in asked} <= set(METRICS)


def test_a_count_without_labels_begins_at_0_so_that_its_first_step_is_an_increase(
    prometheus: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tally, "_own", tally.Tally())
    assert values(prometheus)["llmgw_answers_dropped_total"] == {(): 0}
