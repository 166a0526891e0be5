"""Pods as replicas: their state, priority and address, and what becomes of all others."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sizing.inventory.kubernetes.counting import count
from sizing.inventory.kubernetes.mapping import Ignored, map_pods
from sizing.inventory.kubernetes.rules import Rule
from tests.kubernetes.facts import NOON, a_container, a_listing, a_node, a_pod, mapped, states


def test_a_pod_is_a_replica_by_its_namespace_and_name():
    (replica,) = mapped([a_node()], [a_pod("llama-0", started_at=NOON)]).replicas
    assert (replica.name, replica.model, replica.started_at) == ("llm/llama-0", "org/llama", NOON)


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({}, "ready"),
        ({"ready": False}, "starting"),
        ({"phase": "Pending", "ready": False}, "starting"),
        ({"deleting": True}, "draining"),
        ({"deleting": True, "ready": False}, "draining"),
        ({"node": ""}, "pending"),
        ({"node": "", "gates": ("kueue.x-k8s.io/admission",)}, "pending"),
    ],
)
def test_the_state_of_a_replica(facts, state):
    assert states(mapped([a_node()], [a_pod(**facts)])) == {"llm/llama-0": state}


def test_what_holds_no_device_is_ignored_with_its_reason():
    pods = [
        a_pod("done", phase="Succeeded"),
        a_pod("lost", node="gone"),
        a_pod("plain", gpus=0),
        a_pod("plain-too", gpus=0),
        a_pod("serves"),
    ]
    found = mapped([a_node()], pods)
    assert list(states(found)) == ["llm/serves"]
    assert found.ignored == [
        Ignored("Pod", "asks for no device", ("llm/plain", "llm/plain-too")),
        Ignored("Pod", "is bound to a node that is not listed", ("llm/lost",)),
        Ignored("Pod", "is over (Succeeded)", ("llm/done",)),
    ]


def test_a_pod_that_shares_what_another_holds_is_ignored_with_that_reason():
    counted = count(a_listing([a_node()], [a_pod("a", gpus=0)]))
    counted.notes["llm/a"] = "shares claim c with llm/b, which holds its devices"
    assert map_pods(counted, ()).ignored == [
        Ignored("Pod", "shares claim c with llm/b, which holds its devices", ("llm/a",))
    ]


def test_a_model_has_the_highest_priority_of_what_runs_and_each_replica_its_own():
    pods = [a_pod("a", priority=10), a_pod("b", priority=100), a_pod("c", node="", priority=900)]
    model = mapped([a_node()], pods).models["org/llama"]
    assert model.priority == 100
    assert [r.priority for r in model.replicas] == [10, 100, 900]


def test_where_nothing_runs_yet_the_priority_is_that_of_what_waits():
    assert mapped([], [a_pod(node="", priority=900)]).models["org/llama"].priority == 900


def test_a_model_never_preempts_only_where_all_of_its_pods_say_so():
    never = a_pod("a", preemption_policy="Never")
    assert mapped([a_node()], [never]).models["org/llama"].preemption_policy == "Never"
    both = mapped([a_node()], [never, a_pod("b")])
    assert both.models["org/llama"].preemption_policy == "PreemptLowerPriority"


def test_another_workload_is_a_model_by_its_owner():
    pods = [a_pod(f"train-{n}", words=(), owner=("PyTorchJob", "train"), priority=-1) for n in (0, 1)]
    (model,) = mapped([a_node()], pods).models.values()
    assert (model.name, model.workload) == ("llm/train", "other")
    assert (model.owner, model.priority) == ("PyTorchJob/train in namespace llm", -1)
    assert [r.name for r in model.replicas] == ["llm/train-0", "llm/train-1"]


def test_another_workload_with_the_name_of_a_model_gets_another():
    pods = [a_pod("a", words=["--model", "llm/lab"]), a_pod("b", words=(), owner=("Job", "lab"))]
    found = mapped([a_node()], pods)
    assert {n: m.workload for n, m in found.models.items()} == {
        "llm/lab": "model",
        "llm/lab (other)": "other",
    }
    assert [r.model for r in found.replicas] == ["llm/lab", "llm/lab (other)"]


def test_a_rule_that_is_left_out_is_told_once():
    pods = [a_pod("a"), a_pod("b")]
    found = mapped([a_node()], pods, Rule("bad", "pod", "("))
    (warning,) = found.warnings
    assert warning.startswith('rule "bad" is left out: no regular expression')


def test_names_that_cannot_be_taken_are_told_with_their_pods():
    pods = [a_pod(name, words=["--model", "org//m"]) for name in ("a", "b")]
    (warning,) = mapped([a_node()], pods).warnings
    assert warning == (
        'the model "org//m" by --model must not have an empty or dot segment between slashes:'
        ' pods "llm/a", "llm/b"'
    )


def test_names_that_are_too_long_are_cut_and_stay_apart():
    pods = [a_pod("p" * 253 + end, namespace="n" * 63) for end in "ab"]
    names = [r.name for r in mapped([a_node()], pods).replicas]
    assert [len(name) for name in names] == [255, 255]
    assert len(set(names)) == 2


# Address and mark ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "endpoint"),
    [
        ({"words": ["--model", "m", "--port", "8001"]}, "http://10.0.0.7:8001/v1"),
        ({"words": ["sh", "-c", "vllm serve m --port=8001"]}, "http://10.0.0.7:8001/v1"),
        ({"ports": (("metrics", 9000), ("http-openai", 8000))}, "http://10.0.0.7:8000/v1"),
        ({"ports": (("api", 8080),)}, "http://10.0.0.7:8080/v1"),
        ({"ports": (("api", 8080), ("metrics", 9000))}, ""),
        ({}, ""),
        ({"ports": (("http", 8000),), "ip": "fd00::7"}, "http://[fd00::7]:8000/v1"),
        ({"ports": (("http", 8000),), "ip": ""}, ""),
        ({"ports": (("http", 99999),)}, ""),
        ({"ports": (("http", 8000),), "ip": "10.0.0.7/x?y"}, ""),
    ],
)
def test_the_address_of_a_replica_is_told_by_its_ip_and_port(facts, endpoint):
    container = a_container(*facts.get("words", ("--model", "m")), ports=facts.get("ports", ()))
    pod = a_pod(containers=(container,), ip=facts.get("ip", "10.0.0.7"))
    assert mapped([a_node()], [pod]).replicas[0].endpoint == endpoint


def test_another_workload_has_no_address():
    pod = a_pod(containers=(a_container("x", ports=(("http", 80),), image="i"),), ip="10.0.0.7")
    assert mapped([a_node()], [pod]).replicas[0].endpoint == ""


@pytest.mark.parametrize(("told", "mark"), [("true", True), ("false", False), ("yes", None)])
def test_a_label_or_an_annotation_marks_a_replica_as_benchable(told, mark):
    marked = {"llmgw-admin/benchable": told}
    for pod in (a_pod(labels=marked), a_pod(annotations=marked)):
        assert mapped([a_node()], [pod]).replicas[0].benchable is mark


# Groups -------------------------------------------------------------------------------------------


def lws(worker: int, node: str = "n1", group: int = 0, gpus: int = 8, **facts):
    labels = {
        "leaderworkerset.sigs.k8s.io/name": "r1",
        "leaderworkerset.sigs.k8s.io/group-index": str(group),
        "leaderworkerset.sigs.k8s.io/worker-index": str(worker),
    }
    words = ("--model", "org/r1") if worker == 0 else ("ray", "start", "--block")
    name = f"r1-{group}" if worker == 0 else f"r1-{group}-{worker}"
    return a_pod(name, node, gpus, words, **({"labels": labels} | facts))


SIZE_2 = {"leaderworkerset.sigs.k8s.io/size": "2"}
TWO = [a_node("n1"), a_node("n2")]


def test_a_leader_worker_set_group_is_one_replica_with_its_leaders_model_and_priority():
    later = NOON + timedelta(minutes=1)
    pods = [lws(1, "n2", priority=5, started_at=NOON), lws(0, priority=7, started_at=later)]
    (replica,) = mapped(TWO, pods).replicas
    assert (replica.name, replica.model, replica.priority) == ("llm/r1-0", "org/r1", 7)
    assert (replica.state, replica.started_at) == ("ready", NOON)
    assert [m.pod.name for m in replica.members] == ["r1-0", "r1-0-1"]


def test_each_group_is_a_replica_of_its_own():
    pods = [lws(0, "n1", group) for group in (0, 1)]
    assert list(states(mapped([a_node(gpus=16)], pods))) == ["llm/r1-0", "llm/r1-1"]


@pytest.mark.parametrize(
    ("pods", "state"),
    [
        ([lws(0), lws(1, "n2")], "ready"),
        ([lws(0), lws(1, "n2", ready=False)], "starting"),
        ([lws(0), lws(1, "n2", deleting=True)], "draining"),
        ([lws(0), lws(1, "")], "failed"),
        ([lws(0, ""), lws(1, "")], "pending"),
        ([lws(0, annotations=SIZE_2)], "failed"),
        ([lws(1, "n2", annotations=SIZE_2)], "failed"),
        ([lws(0), lws(1, "n2", phase="Failed")], "ready"),
        ([lws(0, annotations=SIZE_2), lws(1, "n2", phase="Failed")], "failed"),
        ([lws(0), lws(1, "gone")], "failed"),
        ([lws(0, gpus=0), lws(1, "n2")], "ready"),
        ([lws(0, gpus=0, ready=False), lws(1, "n2")], "starting"),
    ],
)
def test_the_state_of_a_group(pods, state):
    assert states(mapped(TWO, pods)) == {"llm/r1-0": state}


def test_the_size_of_a_group_may_be_told_by_its_environment_or_its_set():
    leader = lws(0, containers=(a_container("--model", "org/r1", env={"LWS_GROUP_SIZE": "2"}),))
    assert states(mapped(TWO, [leader])) == {"llm/r1-0": "failed"}
    sizes = {("LeaderWorkerSet", "llm", "r1"): 2}
    assert states(mapped(TWO, [lws(0)], sizes=sizes)) == {"llm/r1-0": "failed"}


def test_a_ray_cluster_is_one_replica_and_its_head_may_have_no_gpu():
    head = {"ray.io/cluster": "big", "ray.io/node-type": "head"}
    worker = {"ray.io/cluster": "big", "ray.io/node-type": "worker"}
    pods = [
        a_pod("big-worker-a", "n1", 8, labels=worker),
        a_pod("big-worker-b", "n2", 8, labels=worker),
        a_pod("the-head", "n1", 0, labels=head, priority=3),
    ]
    found = mapped(TWO, pods, sizes={("RayCluster", "llm", "big"): 3})
    (replica,) = found.replicas
    assert (replica.name, replica.model, replica.state) == ("llm/big", "org/llama", "ready")
    assert (replica.leader.name, replica.priority) == ("the-head", 3)
    assert found.ignored == []


def test_a_group_that_holds_no_device_is_ignored():
    head = {"ray.io/cluster": "big", "ray.io/node-type": "head"}
    found = mapped([a_node()], [a_pod("the-head", gpus=0, labels=head)])
    assert (found.replicas, found.ignored) == (
        [],
        [Ignored("Pod", "asks for no device", ("llm/the-head",))],
    )


def kserve(name: str, app: str, node: str, generation: str = "1"):
    labels = {
        "app": f"isvc.llama3-predictor{app}",
        "serving.kserve.io/inferenceservice": "llama3",
        "isvc.generation": generation,
    }
    return a_pod(name, node, 4, ("--model_name=llama3",), labels=labels)


def test_a_kserve_predictor_over_several_nodes_is_one_replica_for_each_generation():
    pods = [kserve("h", "", "n1"), kserve("w", "-worker", "n2"), kserve("h2", "", "", "2")]
    pods.append(kserve("w2", "-worker", "", "2"))
    assert states(mapped(TWO, pods)) == {
        "llm/llama3-predictor-1": "ready",
        "llm/llama3-predictor-2": "pending",
    }


def test_kserve_predictors_without_workers_stand_alone():
    pods = [kserve("a", "", "n1"), kserve("b", "", "n2")]
    assert list(states(mapped(TWO, pods))) == ["llm/a", "llm/b"]


def test_the_order_of_the_pods_changes_nothing():
    pods = [lws(0), lws(1, "n2"), a_pod("a"), a_pod("b", words=()), a_pod("c", node="")]
    nodes = [a_node("n1", 16), a_node("n2")]
    assert mapped(nodes, pods) == mapped(nodes[::-1], pods[::-1])
