"""The yardstick itself, on what can be counted in the head."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.kubernetes.built import GPU, container, node, pod
from tests.kubernetes.plain_counting import count, quantity, request, tolerates, units


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (8, 8),
        ("8", 8),
        ("+8.", 8),
        (".5", Fraction(1, 2)),
        ("7910m", Fraction(791, 100)),
        ("20k", 20_000),
        ("32386524Ki", 33_163_800_576),
        ("1E", 10**18),
        ("1E3", 1000),
        ("1e-3", Fraction(1, 1000)),
        ("1Ei", 2**60),
        ("-1", -1),
    ],
)
def test_a_quantity_is_the_number_that_is_written(written: object, value: Fraction) -> None:
    assert quantity(written) == value


@pytest.mark.parametrize("written", ["", "four", "1 Gi", "1KiB", "1K", "0x10", ".", "1e", None, True, "８"])
def test_what_is_no_quantity_is_none(written: object) -> None:
    with pytest.raises(ValueError, match="is no quantity"):
        quantity(written)


def test_a_part_of_a_unit_is_taken_as_one() -> None:
    assert units("memory", "1.9Ti") == 2_089_072_092_775
    assert units("cpu", "127500m") == 127_500


def test_a_pod_needs_what_its_worst_moment_needs() -> None:
    """Sidecars run on: 1 + 4 while the second init container runs, 1 + 2 + 1 afterwards."""
    init = [
        container({GPU: "3"}),
        container({GPU: "1"}, always=True),
        container(limits={GPU: "4"}),
        container({GPU: "2"}, always=True),
    ]
    assert request(pod(containers=[container({GPU: "1"})], init=init))[GPU] == 5
    assert request(pod(containers=[container({GPU: "3"})], init=init))[GPU] == 6
    assert request(pod(init=init, overhead={"cpu": "250m"}))["cpu"] == 250


def test_a_pod_that_says_what_it_needs_as_a_whole_needs_that() -> None:
    whole = {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}
    found = request(pod(containers=[container({GPU: "1", "cpu": "5"})], resources=whole, overhead={"cpu": 1}))
    assert found == {GPU: 1, "cpu": 3000}


def test_a_container_that_is_being_resized_needs_the_larger_size() -> None:
    growing = pod(containers=[container({"cpu": "2"})])
    growing["status"]["containerStatuses"] = [
        {"name": "main", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "1500m"}}
    ]
    assert request(growing) == {"cpu": 2000}
    growing["status"]["conditions"] = [{"type": "PodResizePending", "reason": "Infeasible"}]
    assert request(growing) == {"cpu": 1500}


def test_a_cluster_of_two_pods_is_counted() -> None:
    listed = [node(), pod("a"), pod("b", phase="Failed"), pod("c", deleting=True), pod("d", on="gone")]
    [found] = count([*listed, listed[1]]).values()
    assert (found.rows[GPU].used, found.rows[GPU].free) == (2, 6)
    assert (found.host["pods"].used, found.host["cpu"].free) == (2, 128_000)
    assert found.codes() == set()


def test_a_toleration_answers_to_its_key_value_and_effect() -> None:
    taint = {"key": "dedicated", "value": "rag", "effect": "NoSchedule"}
    assert tolerates({"operator": "Exists"}, taint)
    assert tolerates({"key": "dedicated", "value": "rag"}, taint)
    assert not tolerates({"key": "dedicated", "value": "chat"}, taint)
    assert not tolerates({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}, taint)
