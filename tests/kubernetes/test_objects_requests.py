"""What the scheduler books for a pod."""

from __future__ import annotations

from typing import Any

import pytest

from sizing.inventory.kubernetes.facts import Quantities
from tests.kubernetes.made import GPU, Object, pod, reason, the_pod

GIB = 1024**3


def asks(name: str = "c", gpus: Any = None, sidecar: bool = False, **requests: Any) -> Object:
    told = requests | ({} if gpus is None else {GPU: gpus})
    container: Object = {"name": name, "resources": {"requests": told}}
    return container | ({"restartPolicy": "Always"} if sidecar else {})


def booked(*containers: Object, init: Any = None, status: Any = None, **spec: Any) -> Quantities:
    spec |= {"containers": list(containers), "initContainers": init}
    return the_pod(pod(spec=spec, status=status)).requests


def test_containers_add_up() -> None:
    assert booked(asks("a", 1, cpu="500m"), asks("b", "2", cpu=1, memory="1Gi")) == {
        GPU: 3,
        "cpu": 1500,
        "memory": GIB,
    }


def test_limits_stand_in_for_requests_that_are_missing_by_resource_and_container() -> None:
    first: Object = {"name": "a", "resources": {"limits": {GPU: 2, "cpu": "8"}, "requests": {"cpu": "1"}}}
    second: Object = {"name": "b", "resources": {"limits": {"cpu": "4"}, "requests": {"cpu": None}}}
    assert booked(first, second) == {GPU: 2, "cpu": 5000}


@pytest.mark.parametrize("resources", [None, {}, {"limits": None, "requests": None}, [], "8", {"limits": []}])
def test_resources_that_are_missing_or_null_ask_for_nothing(resources: Any) -> None:
    assert booked({"name": "a", "resources": resources}) == {}


def test_zeros_are_no_requests() -> None:
    assert booked(asks("a", 0, cpu="0", memory="1Gi")) == {"memory": GIB}


@pytest.mark.parametrize(("init", "main", "gpus"), [(4, 1, 4), (1, 4, 4), (0, 4, 4), (4, None, 4)])
def test_the_larger_of_init_containers_and_containers_counts(init: int, main: int | None, gpus: int) -> None:
    assert booked(asks("m", main), init=[asks("i", init)])[GPU] == gpus


def test_init_containers_run_one_after_the_other() -> None:
    assert booked(asks("m", 1), init=[asks("i", 2, cpu=3), asks("j", 3, cpu=2)]) == {GPU: 3, "cpu": 3000}


def test_a_sidecar_counts_beside_the_containers() -> None:
    assert booked(asks("m", 2), init=[asks("s", 1, sidecar=True)]) == {GPU: 3}


def test_a_sidecar_counts_beside_the_init_containers_after_it_only() -> None:
    sidecar = asks("s", 1, sidecar=True)
    assert booked(asks("m", 2), init=[sidecar, asks("i", 4)]) == {GPU: 5}
    assert booked(asks("m", 2), init=[asks("i", 4), sidecar]) == {GPU: 4}
    assert booked(asks("m", 0), init=[asks("s", 3, sidecar=True), asks("t", 4, sidecar=True)]) == {GPU: 7}


def test_an_init_container_that_restarts_on_failure_is_no_sidecar() -> None:
    assert booked(asks("m", 2), init=[asks("i", 1) | {"restartPolicy": "OnFailure"}]) == {GPU: 2}


def test_overhead_is_added_to_the_larger() -> None:
    overhead = {"cpu": "250m", "memory": "120Mi"}
    assert booked(asks("m", 1, cpu="1"), init=[asks("i", cpu="2")], overhead=overhead) == {
        GPU: 1,
        "cpu": 2250,
        "memory": 120 * 1024**2,
    }


def test_requests_of_the_pod_as_a_whole_replace_cpu_and_memory() -> None:
    whole = {"requests": {"cpu": "4", "memory": "8Gi", GPU: 5, "hugepages-2Mi": "4Mi"}}
    assert booked(asks("m", 1, cpu="1", memory="1Gi"), resources=whole, overhead={"cpu": "1"}) == {
        GPU: 1,
        "cpu": 5000,
        "memory": 8 * GIB,
        "hugepages-2Mi": 4 * 1024**2,
    }


def test_limits_of_the_pod_as_a_whole_stand_in_only_where_no_container_asks() -> None:
    whole = {"limits": {"cpu": "4", "memory": "8Gi"}}
    assert booked(asks("m", cpu="1"), resources=whole) == {"cpu": 1000, "memory": 8 * GIB}


def resized(requests: Any, allocated: Any = None, name: str = "m", reason: str = "") -> Object:
    conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    told = {"name": name, "resources": {"requests": requests}, "allocatedResources": allocated}
    return {"phase": "Running", "containerStatuses": [told], "conditions": conditions if reason else []}


def test_while_a_container_is_being_resized_the_larger_counts() -> None:
    assert booked(asks("m", 1, cpu="2"), status=resized({"cpu": "4", GPU: 1}))["cpu"] == 4000
    assert booked(asks("m", 1, cpu="6"), status=resized({"cpu": "4", GPU: 1}))["cpu"] == 6000
    assert booked(asks("m", cpu="2"), status=resized({"cpu": "2"}, {"cpu": "5"}))["cpu"] == 5000
    deferred = resized({"cpu": "4"}, reason="Deferred")
    assert booked(asks("m", cpu="6"), status=deferred)["cpu"] == 6000


def test_what_a_resize_asks_for_in_vain_does_not_count() -> None:
    infeasible = resized({"cpu": "4"}, {"cpu": "4"}, reason="Infeasible")
    assert booked(asks("m", cpu="60"), status=infeasible) == {"cpu": 4000}
    assert booked(asks("m", cpu="60"), status=resized({"cpu": "60"}, reason="Infeasible")) == {"cpu": 60_000}


def test_a_sidecar_may_be_resized_too() -> None:
    told = {"initContainerStatuses": [{"name": "s", "resources": {"requests": {"cpu": "3"}}}]}
    assert booked(asks("m"), init=[asks("s", cpu="1", sidecar=True)], status=told) == {"cpu": 3000}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"containers": [asks("m", "four")]}, "container m: nvidia.com/gpu 'four' is no quantity"),
        (
            {"containers": [asks("m", "0.5")]},
            "container m: nvidia.com/gpu: an extended resource must be whole (0.5)",
        ),
        (
            {"containers": [asks("m", "1E")]},
            "container m: nvidia.com/gpu '1E': no node has more than 10,000 devices",
        ),
        (
            {"containers": [asks()], "initContainers": [asks("i", cpu=-1)]},
            "container i: cpu -1 is a negative quantity",
        ),
        ({"containers": [asks()], "overhead": {"cpu": "x"}}, "overhead: cpu 'x' is no quantity"),
        (
            {"containers": [asks()], "resources": {"requests": {"cpu": []}}},
            "the pod: cpu (a list) is no quantity",
        ),
    ],
)
def test_a_quantity_that_is_none_skips_the_pod_with_its_place(spec: Object, why: str) -> None:
    assert reason(pod(spec=spec)) == why
