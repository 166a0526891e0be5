"""What can be said of a listing only when all of its objects are known."""

from __future__ import annotations

from typing import Any

import pytest

from sizing.inventory.kubernetes import objects
from tests.kubernetes.made import (
    Object,
    container,
    listed,
    node,
    pod,
    priority_class,
    the_pod,
)


def with_class(name: str, **more: Any) -> Object:
    return pod(spec={"containers": [container()], "nodeName": "n1", "priorityClassName": name} | more)


def test_a_pod_gets_its_priority_from_its_class_wherever_that_stands() -> None:
    gold = priority_class("gold", 500, preemptionPolicy="Never")
    for items in ((with_class("gold"), gold), (gold, with_class("gold"))):
        listing = listed(node(), *items)
        (found,) = listing.pods.values()
        assert (found.priority, found.preemption_policy) == (500, "Never")
        assert listing.priority_classes == {"gold": (500, "Never")}
        assert listing.warnings == []


def test_what_a_pod_says_itself_goes_before_its_class() -> None:
    gold = priority_class("gold", 500, preemptionPolicy="Never")
    found = the_pod(with_class("gold", priority=7), gold)
    assert (found.priority, found.preemption_policy) == (7, "Never")
    found = the_pod(with_class("gold", priority=0, preemptionPolicy="PreemptLowerPriority"), gold)
    assert (found.priority, found.preemption_policy) == (0, "PreemptLowerPriority")


@pytest.mark.parametrize(
    ("name", "value"), [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)]
)
def test_the_classes_of_the_system_are_known(name: str, value: int) -> None:
    assert the_pod(with_class(name)).priority == value


def test_a_class_that_is_not_listed_is_told_and_the_priority_is_0() -> None:
    listing = listed(node(), with_class("gold"))
    assert [found.priority for found in listing.pods.values()] == [0]
    assert listing.warnings == [
        "pod llm/p1 is counted with priority 0: there is no PriorityClass gold in the list"
    ]
    assert listed(node(), with_class("gold", priority=5)).warnings == []


def test_a_pod_without_a_class_has_the_default_ones_priority() -> None:
    low = priority_class("low", 10, globalDefault=True, preemptionPolicy="Never")
    other = priority_class("other", 90, globalDefault=False)
    found = the_pod(pod(), low, other)
    assert (found.priority, found.preemption_policy) == (10, "Never")
    found = the_pod(pod(spec={"containers": [container()], "nodeName": "n1", "priority": 0}), low)
    assert (found.priority, found.preemption_policy) == (0, "PreemptLowerPriority")
    assert the_pod(with_class("other"), low, other).priority == 90


def test_of_several_default_classes_the_lowest_counts_while_it_is_there() -> None:
    low, high = (priority_class(name, n, globalDefault=True) for name, n in (("low", 10), ("high", 20)))
    listing = listed(node(), pod(), high, low)
    (found,) = listing.pods.values()
    assert found.priority == 10
    for gone, priority in ((low, 20), (high, 0)):
        objects.remove(listing, gone)
        objects.finish(listing)
        assert found.priority == priority


def test_finish_may_be_called_again_when_a_class_has_changed() -> None:
    listing = listed(node(), with_class("gold"))
    objects.add(listing, priority_class("gold", 9))
    objects.finish(listing)
    assert [found.priority for found in listing.pods.values()] == [9]
    assert listing.warnings == []


def seeing(name: str, value: str = "all", gpus: Any = None, **metadata: Any) -> Object:
    one = container(gpus, env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": value}])
    return pod(name, spec={"containers": [one], "nodeName": "n1"}, **metadata)


def test_a_pod_that_sees_every_gpu_without_asking_is_warned_of() -> None:
    assert listed(node(), seeing("notebook")).warnings == [
        "pod llm/notebook can see every GPU of its node without asking for one (NVIDIA_VISIBLE_DEVICES=all)"
    ]
    assert listed(node(), seeing("void", "void"), seeing("asks", gpus=1)).warnings == []
    over = seeing("over")
    over["status"] = {"phase": "Succeeded"}
    assert listed(node(), over).warnings == []


def test_such_pods_are_one_warning_in_which_those_of_daemonsets_come_last() -> None:
    owner = [{"kind": "DaemonSet", "name": "plugin", "controller": True}]
    daemons = [seeing(f"a-{number}", ownerReferences=owner) for number in range(5)]
    assert listed(node(), *daemons, seeing("z")).warnings == [
        "pods llm/z, llm/a-0, llm/a-1, llm/a-2, llm/a-3 and 1 more can see every GPU of their nodes "
        "without asking for one (NVIDIA_VISIBLE_DEVICES=all)"
    ]


def test_a_list_without_pods_is_warned_of_loudly() -> None:
    assert listed(node()).warnings == [
        "there are no pods in the list, so every GPU looks free: "
        "list them as well, as with `kubectl get nodes,pods -A -o json`"
    ]


def test_pods_without_nodes_are_warned_of() -> None:
    assert listed(pod("a"), pod("b")).warnings == [
        "there are no nodes in the list, so 2 pods have no place in it"
    ]
