"""What a run found: its levels, the level that is being measured, and the measurement that it took."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from sizing.domain.levels import Level, Spread
from sizing.models import BenchLevel, Measurement, Refresh

OBSERVED = Level(
    arrival="poisson",
    load=1.5,
    tok_per_sec=384.25,
    duration_s=47.8,
    sent=71,
    completed=70,
    failed=1,
    cut=3,
    conform=69,
    requests_per_sec=1.46,
    sent_per_sec=1.49,
    delay_p95_s=0.002,
    input_tokens=1024.5,
    output_tokens=256.0,
    ttft=Spread(141.2, {50.0: 139.8, 90.0: 155.0, 95.0: 160.3, 99.0: 171.0, 99.9: 180.5}),
    tpot=Spread(21.4, {50.0: 21.3}),
    e2e=Spread(None, {95.0: 5923.3, 99.0: 6061.5}),
    streamed=True,
    counted=True,
    failures={"http 503": 1},
    warnings=("few_requests",),
)
SHOWN = {
    "position": 2,
    "load": 1.5,
    "arrival": "poisson",
    "verdict": "fail",
    "why": "1.41 % of the requests failed, at most 1 % may",
    "tok_per_sec": 384.25,
    "requests_per_sec": 1.46,
    "sent_per_sec": 1.49,
    "delay_p95_s": 0.002,
    "duration_s": 47.8,
    "sent": 71,
    "completed": 70,
    "failed": 1,
    "cut": 3,
    "conform": 69,
    "failures": {"http 503": 1},
    "input_tokens": 1024.5,
    "output_tokens": 256.0,
    "ttft_ms": {"mean": 141.2, "p50": 139.8, "p95": 160.3, "p99": 171.0, "p90": 155.0, "p99.9": 180.5},
    "tpot_ms": {"mean": 21.4, "p50": 21.3, "p95": None, "p99": None},
    "e2e_ms": {"mean": None, "p50": None, "p95": 5923.3, "p99": 6061.5},
    "streamed": True,
    "counted": True,
    "cancelled": False,
    "warnings": ["few_requests"],
}
UNKNOWN = {"mean": None, "p50": None, "p95": None, "p99": None}


def add_level(position: int, observed: dict[str, Any] | None = None, **owner: Any) -> None:
    BenchLevel.objects.create(
        position=position,
        verdict="fail",
        why="1.41 % of the requests failed, at most 1 % may",
        observed=OBSERVED.as_dict() if observed is None else observed,
        **owner,
    )


def levels(admin: APIClient, row: Any, collection: str) -> Any:
    return admin.get(f"/api/v1/{collection}/{row.pk}").json()["levels"]


@pytest.mark.parametrize(("collection", "owner"), [("measurements", "measurement"), ("refreshes", "refresh")])
def test_a_level_is_shown_as_it_was_observed(
    admin: APIClient, fleet: dict[str, Any], collection: str, owner: str
) -> None:
    row = fleet[collection]
    add_level(2, **{owner: row})
    add_level(1, **{owner: row})
    shown = levels(admin, row, collection)
    assert shown == [SHOWN | {"position": 1}, SHOWN]
    assert admin.get(f"/api/v1/{collection}").json()["results"][0]["levels"] == shown


@pytest.mark.parametrize("observed", [Level().as_dict(), {}], ids=["nothing known", "of another version"])
def test_what_is_not_known_of_a_level_is_null(
    admin: APIClient, fleet: dict[str, Any], observed: dict[str, Any]
) -> None:
    add_level(2, observed, measurement=fleet["measurements"])
    flags = {"counted": observed.get("counted"), "cancelled": observed.get("cancelled")}
    kept = {key: SHOWN[key] for key in ("position", "verdict", "why")}
    latencies = dict.fromkeys(("ttft_ms", "tpot_ms", "e2e_ms"), UNKNOWN)
    expected = dict.fromkeys(SHOWN) | kept | latencies | flags | {"failures": {}, "warnings": []}
    assert levels(admin, fleet["measurements"], "measurements") == [expected]


def test_the_level_that_is_being_measured_is_shown(admin: APIClient, fleet: dict[str, Any]) -> None:
    live = {
        "level": 2,
        "most": 8,
        "load": 1.5,
        "arrival": "poisson",
        "purpose": "narrowing",
        "seconds": 12.4,
        "sent": 12,
        "completed": 7,
        "failed": 1,
        "tok_per_sec": 214.6,
    }
    Refresh.objects.update(state="running", live=live)
    path = f"/api/v1/refreshes/{fleet['refreshes'].pk}"
    assert admin.get(path).json()["live"] == live
    Refresh.objects.update(live={"purpose": "one request alone", "of_later_versions": 1})
    assert admin.get(path).json()["live"] == dict.fromkeys(live) | {"purpose": "one request alone"}
    Refresh.objects.update(live={})
    assert admin.get(path).json()["live"] is None


def test_a_run_and_its_measurement_name_each_other_and_show_the_same_levels(
    admin: APIClient, fleet: dict[str, Any]
) -> None:
    measurement, refresh = fleet["measurements"], fleet["refreshes"]
    Measurement.objects.update(
        refresh=refresh,
        bracket="384 tok/s; the next level tried, 402, failed",
        generator="builtin 1.0",
        workload={"input_tokens": 1024, "output_tokens": 256, "arrival": "poisson", "seed": 7},
        replica_name="llama-70b-0",
        gpu_type="NVIDIA-H100-80GB-HBM3",
    )
    add_level(2, measurement=measurement)
    shown = admin.get(f"/api/v1/measurements/{measurement.pk}").json()
    run = admin.get(f"/api/v1/refreshes/{refresh.pk}").json()
    assert (shown["refresh"], run["measurement"]) == (refresh.pk, measurement.pk)
    assert shown["levels"] == run["levels"] == [SHOWN]
    assert {key: shown[key] for key in ("bracket", "generator", "workload", "replica", "gpu_type")} == {
        "bracket": "384 tok/s; the next level tried, 402, failed",
        "generator": "builtin 1.0",
        "workload": {"input_tokens": 1024, "output_tokens": 256, "arrival": "poisson", "seed": 7},
        "replica": "llama-70b-0",
        "gpu_type": "NVIDIA-H100-80GB-HBM3",
    }
    refresh.delete()
    assert admin.get(f"/api/v1/measurements/{measurement.pk}").json() == shown | {"refresh": None}


def test_a_run_that_is_only_looked_at_keeps_its_levels(admin: APIClient, fleet: dict[str, Any]) -> None:
    Refresh.objects.update(state="done", save_result=False)
    add_level(2, refresh=fleet["refreshes"])
    run = admin.get(f"/api/v1/refreshes/{fleet['refreshes'].pk}").json()
    assert (run["save_result"], run["measurement"], run["levels"]) == (False, None, [SHOWN])


def test_what_was_measured_is_not_written_by_callers(admin: APIClient, fleet: dict[str, Any]) -> None:
    measurement = fleet["measurements"]
    Measurement.objects.update(bracket="384 tok/s", refresh=fleet["refreshes"])
    add_level(2, measurement=measurement)
    path = f"/api/v1/measurements/{measurement.pk}"
    before = admin.get(path).json()
    written = before | {"bracket": "999", "levels": [], "refresh": None, "workload": {"seed": 1}}
    assert admin.put(path, written).status_code == 409
    assert admin.get(path).json() == before


def test_what_only_the_desk_writes_is_not_written_by_callers(admin: APIClient, fleet: dict[str, Any]) -> None:
    Measurement.objects.update(generator="", workload={}, refresh=None)
    path = f"/api/v1/measurements/{fleet['measurements'].pk}"
    before = admin.get(path).json()
    written = before | {"bracket": "999", "levels": [{}], "refresh": 1, "workload": {"seed": 1}}
    assert admin.put(path, written).json() == before


def test_a_run_that_failed_is_found_beside_the_last_valid_measurement(
    admin: APIClient, fleet: dict[str, Any]
) -> None:
    before = admin.get("/api/v1/measurements").json()
    Refresh.objects.update(state="failed", error="the replica went away at 4 streams")
    found = admin.get("/api/v1/refreshes?variant=h100-tp2&profile=chat&state=failed").json()["results"]
    assert [(run["id"], run["error"]) for run in found] == [
        (fleet["refreshes"].pk, "the replica went away at 4 streams")
    ]
    assert admin.get("/api/v1/measurements").json() == before


def test_a_figure_that_was_measured_is_not_changed_by_callers(
    admin: APIClient, fleet: dict[str, Any]
) -> None:
    path = f"/api/v1/measurements/{fleet['measurements'].pk}"
    Measurement.objects.update(generator="builtin 1")
    before = Measurement.objects.values().get(pk=fleet["measurements"].pk)
    answer = admin.patch(path, {"tok_per_sec": 1})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert Measurement.objects.values().get(pk=fleet["measurements"].pk) == before


def test_a_variant_that_changed_is_told_at_once(admin: APIClient, fleet: dict[str, Any]) -> None:
    measured = fleet["measurements"]
    Measurement.objects.filter(pk=measured.pk).update(variant_shape="1 GPU, the whole GPU")
    reason = admin.get(f"/api/v1/measurements/{measured.pk}").json()["stale_reason"]
    assert reason.startswith("the variant changed: measured with 1 GPU, the whole GPU, now ")
