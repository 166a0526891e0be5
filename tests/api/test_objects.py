"""What is written comes back, exactly."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from rest_framework.test import APIClient

from sizing.models import Gpu, Measurement, Node, Placement, Replica, ServedModel, Target, Variant
from tests.api.conftest import LLAMA
from tests.api.forms import ONE_OF_EACH, REPLICA


def without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_ids(v) for k, v in value.items() if k != "id"}
    return [without_ids(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("collection", "form", "added"), ONE_OF_EACH)
def test_an_object_lives_from_post_to_delete(
    admin: APIClient, fleet: dict[str, Any], collection: str, form: dict[str, Any], added: dict[str, Any]
) -> None:
    made = admin.post(f"/api/v1/{collection}", form)
    assert made.status_code == 201, made.json()
    assert without_ids(made.json()) == form | added
    at = made.headers["Location"]
    assert admin.get(at).json() == made.json()
    assert admin.put(at, made.json()).json() == made.json()
    assert admin.patch(at, {}).json() == made.json()
    assert made.json() in admin.get(f"/api/v1/{collection}").json()["results"]
    gone = admin.delete(at)
    assert (gone.status_code, gone.content) == (204, b"")
    assert admin.get(at).status_code == 404


def test_what_is_left_out_takes_its_default(admin: APIClient) -> None:
    made = admin.post("/api/v1/nodes", {"name": "n1", "gpus": [{"type": "L40S"}]}).json()
    assert without_ids(made) == {
        "name": "n1",
        "ready": True,
        "schedulable": True,
        "stale": False,
        "labels": {},
        "taints": [],
        "cpu_millis": None,
        "memory_mib": None,
        "pods": None,
        "cost_per_hour": None,
        "source": "",
        "gpus": [
            {
                "index": 0,
                "uuid": "",
                "type": "L40S",
                "memory_mib": None,
                "healthy": True,
                "used_outside_mib": 0,
                "partition": False,
            }
        ],
    }


def test_a_run_of_gpus_takes_the_next_indexes(admin: APIClient) -> None:
    gpus = [{"type": "A100", "count": 2}, {"index": 7, "type": "A100"}, {"type": "A100", "count": 2}]
    made = admin.post("/api/v1/nodes", {"name": "n1", "gpus": gpus}).json()
    assert [gpu["index"] for gpu in made["gpus"]] == [0, 1, 7, 8, 9]


def test_a_put_resets_what_it_leaves_out_and_a_patch_keeps_it(
    admin: APIClient, fleet: dict[str, Any]
) -> None:
    admin.patch("/api/v1/nodes/gpu-a1", {"pods": 110, "schedulable": False})
    patched = admin.patch("/api/v1/nodes/gpu-a1", {"ready": False}).json()
    assert (patched["pods"], patched["schedulable"], patched["ready"], len(patched["gpus"])) == (
        110,
        False,
        False,
        4,
    )
    admin.delete("/api/v1/replicas/llama-70b-0")
    put = admin.put("/api/v1/nodes/gpu-a1", {"name": "gpu-a1"}).json()
    assert (put["pods"], put["schedulable"], put["ready"], put["gpus"]) == (None, True, True, [])


def test_gpus_are_replaced_by_index_and_keep_their_rows(admin: APIClient, fleet: dict[str, Any]) -> None:
    before = dict(Gpu.objects.values_list("index", "pk"))
    gpus = [{"type": "NVIDIA-H100-80GB-HBM3", "memory_mib": 81559, "count": 3}, {"index": 9, "type": "L4"}]
    assert admin.patch("/api/v1/nodes/gpu-a1", {"gpus": gpus}).status_code == 200
    after = dict(Gpu.objects.values_list("index", "pk"))
    assert sorted(after) == [0, 1, 2, 9]
    assert all(after[index] == before[index] for index in (0, 1, 2))


def test_two_gpus_may_swap_their_uuids(admin: APIClient) -> None:
    first, second = {"index": 0, "type": "L4", "uuid": "GPU-a"}, {"index": 1, "type": "L4", "uuid": "GPU-b"}
    admin.post("/api/v1/nodes", {"name": "n1", "gpus": [first, second]})
    swapped = [first | {"uuid": "GPU-b"}, second | {"uuid": "GPU-a"}]
    answer = admin.patch("/api/v1/nodes/n1", {"gpus": swapped}).json()
    assert [gpu["uuid"] for gpu in answer["gpus"]] == ["GPU-b", "GPU-a"]


def test_variants_are_replaced_by_name_in_the_new_order(admin: APIClient, fleet: dict[str, Any]) -> None:
    kept = fleet["variants"].pk
    variants = [{"name": "new"}, {"name": "h100-tp2", "gpus": 2}]
    answer = admin.patch(f"/api/v1/models/{LLAMA}", {"variants": variants}).json()
    assert [v["name"] for v in answer["variants"]] == ["new", "h100-tp2"]
    assert answer["variants"][1]["id"] == kept
    assert not Variant.objects.filter(name="h100-x1").exists()


def test_a_new_variant_comes_after_the_others(admin: APIClient, fleet: dict[str, Any]) -> None:
    assert admin.post("/api/v1/variants", {"model": LLAMA, "name": "late"}).json()["position"] == 2


def test_a_replica_moves_to_other_gpus(admin: APIClient, fleet: dict[str, Any]) -> None:
    kept = Placement.objects.get(gpu__index=1).pk
    moved = admin.patch("/api/v1/replicas/llama-70b-0", {"placement": [{"node": "gpu-a1", "gpus": [3, 1]}]})
    assert moved.json()["placement"] == [{"node": "gpu-a1", "gpus": [1, 3]}]
    assert Placement.objects.get(gpu__index=1).pk == kept


def test_decimals_keep_six_places_rounded_half_even(admin: APIClient, fleet: dict[str, Any]) -> None:
    form = {"tokens_per_sec": 1.0000005, "model": LLAMA, "utilization": 0.1234565}
    made = admin.post("/api/v1/targets", form).json()
    assert (made["tokens_per_sec"], made["utilization"]) == (1.0, 0.123456)


def test_a_measurement_without_a_time_is_of_now(admin: APIClient, fleet: dict[str, Any]) -> None:
    form = {"model": LLAMA, "variant": "h100-x1", "profile": "chat", "tok_per_sec": 1}
    made = admin.post("/api/v1/measurements", form).json()
    assert made["source"] == "manual"
    assert Measurement.objects.get(pk=made["id"]).measured_at.year >= 2026


def test_another_object_of_the_same_name_is_refused(admin: APIClient, fleet: dict[str, Any]) -> None:
    for collection, form in (("nodes", {"name": "gpu-a1"}), ("models", {"name": LLAMA})):
        answer = admin.post(f"/api/v1/{collection}", form)
        assert answer.status_code == 400
        assert list(answer.json()["fields"]) == ["name"]
    assert (Node.objects.count(), ServedModel.objects.count()) == (1, 1)


def test_a_second_target_for_the_same_question_is_refused(admin: APIClient, fleet: dict[str, Any]) -> None:
    answer = admin.post("/api/v1/targets", {"model": LLAMA, "profile": "chat", "tokens_per_sec": 1})
    assert answer.status_code == 400
    assert "already" in answer.json()["error"]


def test_what_others_hold_is_not_removed(admin: APIClient, fleet: dict[str, Any]) -> None:
    tp2 = fleet["variants"].pk
    for path in ("nodes/gpu-a1", f"models/{LLAMA}", f"variants/{tp2}"):
        answer = admin.delete(f"/api/v1/{path}")
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
        assert "llama-70b-0" in answer.json()["error"]
    answer = admin.delete("/api/v1/profiles/chat")
    assert answer.status_code == 409
    assert f"{LLAMA} h100-tp2" in answer.json()["error"]
    answer = admin.patch("/api/v1/nodes/gpu-a1", {"gpus": []})
    assert (answer.status_code, Gpu.objects.count()) == (409, 4)
    answer = admin.patch(f"/api/v1/models/{LLAMA}", {"variants": []})
    assert (answer.status_code, Variant.objects.count()) == (409, 2)


def test_nothing_that_holds_a_variant_goes_silently_with_it(admin: APIClient, fleet: dict[str, Any]) -> None:
    variant = Variant.objects.get(name="h100-x1")
    measured = Measurement.objects.create(
        variant=variant,
        profile=fleet["profiles"],
        tok_per_sec=1,
        measured_at=datetime(2026, 11, 1, tzinfo=UTC),
    )
    target = Target.objects.create(model=fleet["models"], variant=variant, tokens_per_sec=1)
    held = f"the measurement {measured.pk} of {LLAMA} h100-x1 and the target {target.pk} of {LLAMA}"
    refused = {"error": f'variant "h100-x1" is in use by {held}', "code": "conflict"}
    without = {"name": LLAMA, "variants": [{"name": "h100-tp2", "gpus": 2}]}
    for answer in (
        admin.delete(f"/api/v1/variants/{variant.pk}"),
        admin.patch(f"/api/v1/models/{LLAMA}", {"variants": without["variants"]}),
        admin.put(f"/api/v1/models/{LLAMA}", without),
    ):
        assert (answer.status_code, answer.json()) == (409, refused)
    assert (Measurement.objects.count(), Target.objects.count(), Variant.objects.count()) == (2, 2, 2)
    measured.delete()
    target.delete()
    assert admin.delete(f"/api/v1/variants/{variant.pk}").status_code == 204


def test_a_profile_that_is_a_default_or_a_targets_is_not_removed(
    admin: APIClient, fleet: dict[str, Any]
) -> None:
    Measurement.objects.all().delete()
    answer = admin.delete("/api/v1/profiles/chat")
    held = f"the target {fleet['targets'].pk} of {LLAMA} and the model {LLAMA}"
    assert answer.json() == {"error": f'bench profile "chat" is in use by {held}', "code": "conflict"}
    fleet["targets"].delete()
    answer = admin.delete("/api/v1/profiles/chat")
    assert answer.json()["error"] == f'bench profile "chat" is in use by the model {LLAMA}'
    admin.patch(f"/api/v1/models/{LLAMA}", {"default_profile": None})
    assert admin.delete("/api/v1/profiles/chat").status_code == 204


def test_a_model_goes_with_what_was_measured_unless_replicas_run(
    admin: APIClient, fleet: dict[str, Any]
) -> None:
    at = f"/api/v1/models/{LLAMA}"
    assert (admin.delete(at).status_code, Measurement.objects.count(), Target.objects.count()) == (409, 1, 1)
    admin.delete("/api/v1/replicas/llama-70b-0")
    assert admin.delete(at).status_code == 204
    assert (Measurement.objects.count(), Target.objects.count(), Variant.objects.count()) == (0, 0, 0)


def test_a_conflict_names_five_holders_and_counts_the_others(admin: APIClient, fleet: dict[str, Any]) -> None:
    variant = Variant.objects.get(name="h100-x1")
    Replica.objects.bulk_create(Replica(name=f"p{i}", variant=variant, state="pending") for i in range(7))
    answer = admin.delete(f"/api/v1/variants/{variant.pk}")
    assert (
        answer.json()["error"] == 'variant "h100-x1" is in use by the replicas p0, p1, p2, p3, p4 and 2 more'
    )


WRONG_REPLICAS = [
    ({"placement": [{"node": "gpu-z", "gpus": [0, 1]}]}, "placement[0].node", 'no node "gpu-z"'),
    (
        {"placement": [{"node": "gpu-a1", "gpus": [2, 9]}]},
        "placement[0].gpus[1]",
        'node "gpu-a1" has no GPU 9',
    ),
    ({"placement": [{"node": "gpu-a1", "gpus": [2, 2]}]}, "placement[0].gpus[1]", "stands there twice"),
    ({"placement": []}, "placement", "may be empty only for a pending replica"),
    ({"variant": "no"}, "variant", f'model "{LLAMA}" has no variant "no"'),
    ({"model": "no"}, "model", 'no model "no"'),
]


@pytest.mark.parametrize(("change", "path", "message"), WRONG_REPLICAS)
def test_a_replica_is_where_gpus_are(
    admin: APIClient, fleet: dict[str, Any], change: dict[str, Any], path: str, message: str
) -> None:
    answer = admin.post("/api/v1/replicas", REPLICA | change)
    assert answer.status_code == 400
    assert answer.json() == {
        "error": f"{path}: {message}",
        "code": "invalid",
        "fields": {path: [message]},
    }
    assert Replica.objects.count() == 1


def test_two_replicas_cannot_claim_one_whole_gpu(admin: APIClient, fleet: dict[str, Any]) -> None:
    answer = admin.post("/api/v1/replicas", REPLICA | {"placement": [{"node": "gpu-a1", "gpus": [1, 2]}]})
    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == ["placement"]
    assert "llama-70b-0" in answer.json()["error"]
    assert (Replica.objects.count(), Placement.objects.count()) == (1, 2)


def test_a_variant_cannot_outgrow_what_runs_it(admin: APIClient, fleet: dict[str, Any]) -> None:
    at = f"/api/v1/variants/{fleet['variants'].pk}"
    answer = admin.patch(at, {"gpus": 4})
    message = 'holds 2 GPUs of node "gpu-a1", but variant "h100-tp2" takes 4 on each node'
    assert answer.status_code == 400
    assert answer.json() == {
        "error": f'replica "llama-70b-0": {message}',
        "code": "invalid",
        "fields": {'replica "llama-70b-0"': [message]},
    }
    assert admin.patch(at, {"gpu_memory_mib": 90000}).status_code == 400
    fleet["variants"].refresh_from_db()
    assert (fleet["variants"].gpus, fleet["variants"].gpu_memory_mib) == (2, None)
    assert admin.patch(at, {"gpu_memory_mib": 80000}).status_code == 200


def test_a_pending_replica_starts_only_with_gpus(admin: APIClient, fleet: dict[str, Any]) -> None:
    form = REPLICA | {"state": "pending", "placement": []}
    assert admin.post("/api/v1/replicas", form).status_code == 201
    assert admin.patch("/api/v1/replicas/llama-70b-1", {"state": "ready"}).status_code == 400
    started = {"state": "ready", "placement": REPLICA["placement"]}
    assert admin.patch("/api/v1/replicas/llama-70b-1", started).status_code == 200
