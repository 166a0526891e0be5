"""Of which model a pod is a replica, and what says so."""

from __future__ import annotations

import pytest

from sizing.inventory.kubernetes.rules import Rule
from tests.kubernetes.facts import a_container, a_pod, identity

SCRIPT = """set -e
# it's only a comment: vllm serve org/comment
export CUDA_VISIBLE_DEVICES=0
exec vllm serve ${MODEL} \\
  --served-model-name "org/from script" --port 8000
"""


@pytest.mark.parametrize(
    ("words", "model", "by"),
    [
        (["--model", "org/m", "--tensor-parallel-size", "4"], "org/m", "--model"),
        (["--model=org/m"], "org/m", "--model"),
        (["--model", "/models/m", "--served-model-name", "a", "b"], "a", "--served-model-name"),
        (["--served_model_name=a", "--model", "org/m"], "a", "--served-model-name"),
        (["vllm", "serve", "org/m", "--port", "8000"], "org/m", "the command line"),
        (["vllm", "serve", "--port", "8000", "org/m"], "org/m", "the command line"),
        (["vllm", "serve", "--enable-prefix-caching", "org/m"], "org/m", "the command line"),
        (["/opt/venv/bin/vllm", "serve", "--model", "org/m"], "org/m", "--model"),
        (["org/m", "--max-model-len", "4096"], "org/m", "the command line"),
        (["python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "org/m"], "org/m", "--model"),
        (["python", "-m", "sglang.launch_server", "--model-path", "org/m"], "org/m", "--model-path"),
        (["text-generation-launcher", "--model-id", "org/m"], "org/m", "--model-id"),
        (["trtllm-serve", "org/m", "--tp_size", "4"], "org/m", "the command line"),
        (["trtllm-serve", "serve", "org/m"], "org/m", "the command line"),
        (["lmdeploy", "serve", "api_server", "org/m"], "org/m", "the command line"),
        (["python3", "-m", "dynamo.vllm", "--model", "org/m"], "org/m", "--model"),
        (["llama-server", "-m", "/models/m-q4.gguf", "--alias", "m"], "m", "--alias"),
        (["llama-server", "-m", "/models/m-q4.gguf"], "m-q4", "--model"),
        (["--model_name=m", "--tensor-parallel-size=4"], "m", "--model-name"),
        (["sh", "-c", "vllm serve org/m --port 8000"], "org/m", "the command line"),
        (["bash", "-lc", "ray start --head; vllm serve org/m"], "org/m", "the command line"),
        (["bash", "-euo", "pipefail", "-c", "vllm serve org/m && true"], "org/m", "the command line"),
        (["sh", "-c", "vllm serve org/m --chat-template 'never closed"], "org/m", "the command line"),
        (["sh", "-c", SCRIPT], "org/from script", "--served-model-name"),
        (["vllm", "serve", "$(MODEL)"], "org/env", "the command line"),
        (["sh", "-c", "vllm serve ${OTHER:-org/else}"], "org/else", "the command line"),
        (["--model", "/models/llama-3/"], "llama-3", "--model"),
        (["--model", "s3://bucket/llama-3/1"], "llama-3", "--model"),
        (["--model", "hf://org/m"], "org/m", "--model"),
        (["--model", "/hub/models--org--m/snapshots/0123456789abcdef0123"], "org/m", "--model"),
    ],
)
def test_the_command_line_says_which_model_is_served(words, model, by):
    pod = a_pod(containers=(a_container(*words, env={"MODEL": "org/env"}),))
    found = identity(pod)
    assert (found.model, found.by, found.workload) == (model, by, "model")


@pytest.mark.parametrize(
    "words",
    [
        ["python", "train.py", "--model", "org/m"],
        ["torchrun", "--nproc-per-node", "8", "train.py", "--model", "org/m"],
        ["vllm", "bench", "serve", "--model", "org/m"],
        ["sleep", "infinity"],
        ["sh", "-c"],
        ["sh", "-c", "'"],
        [],
    ],
)
def test_what_serves_no_model_is_another_workload_by_its_owner(words):
    pod = a_pod(containers=(a_container(*words, image="team/tools:1"),), owner=("StatefulSet", "lab"))
    found = identity(pod)
    assert (found.model, found.workload, found.by) == ("llm/lab", "other", "nothing names a model")


def test_options_alone_are_a_servers_unless_a_job_runs_them():
    words = ["--model", "org/m"]
    plain = a_pod(containers=(a_container(*words, image="team/tools:1"),))
    job = a_pod(containers=(a_container(*words, image="team/tools:1"),), owner=("Job", "tune"))
    assert identity(plain).model == "org/m"
    assert identity(job).model == "llm/tune"


def test_the_environment_names_the_model_of_tgi():
    pod = a_pod(containers=(a_container(image="tgi", env={"MODEL_ID": "org/m"}),))
    found = identity(pod)
    assert (found.model, found.by) == ("org/m", "the variable MODEL_ID")


def test_the_container_that_asks_for_devices_is_looked_at_first():
    router = a_container("--model", "org/a-router", requests={})
    engine = a_container("--model", "org/engine")
    assert identity(a_pod(containers=(router, engine))).model == "org/engine"


def test_a_path_that_says_nothing_leaves_the_name_to_kserve_and_then_to_the_owner():
    words = ["vllm", "serve", "/mnt/models"]
    owner = ("Deployment", "gemma")
    kserve = {"serving.kserve.io/inferenceservice": "llama3"}
    found = identity(a_pod(words=words, owner=owner, labels=kserve))
    assert found.model == "llama3"
    assert found.by == ('label serving.kserve.io/inferenceservice, for the command line is "/mnt/models"')
    assert identity(a_pod(words=words, owner=owner)).model == "gemma"


def test_kserve_names_a_model_that_nothing_else_names():
    pod = a_pod(words=(), labels={"serving.kserve.io/inferenceservice": "llama3"})
    assert (identity(pod).model, identity(pod).by) == (
        "llama3",
        "label serving.kserve.io/inferenceservice",
    )


def test_own_labels_come_before_all_others_and_an_annotation_may_hold_a_slash():
    labels = {"llm-d.ai/model": "other", "llmgw-admin/variant": "tp1"}
    pod = a_pod(labels=labels, annotations={"llmgw-admin/model": "own/name"})
    found = identity(pod)
    assert (found.model, found.variant, found.by) == ("own/name", "tp1", "annotation llmgw-admin/model")


def test_what_the_server_is_called_comes_before_the_label_of_llm_d():
    labels = {"llm-d.ai/model": "ms-inference"}
    told = identity(a_pod(words=["--model", "Qwen/Qwen3-32B"], labels=labels))
    assert (told.model, told.by) == ("Qwen/Qwen3-32B", "--model")
    path = identity(a_pod(words=["--model", "/mnt/models"], labels=labels))
    assert (path.model, path.by) == ("ms-inference", "label llm-d.ai/model")
    assert identity(a_pod(words=(), labels=labels)).model == "ms-inference"


def test_a_name_that_no_model_can_have_makes_another_workload_with_a_note():
    found = identity(a_pod(words=["--model", "org//m"], owner=("StatefulSet", "lab")))
    assert (found.model, found.workload) == ("llm/lab", "other")
    assert found.note == (
        'the model "org//m" by --model must not have an empty or dot segment between slashes'
    )


def test_another_workload_whose_owner_is_called_like_an_address_gets_another_name():
    pod = a_pod(words=(), owner=("StatefulSet", "refresh"))
    assert identity(pod).model == "llm/refresh (other)"


# Owners -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("owner", "labels", "owners", "name"),
    [
        (("ReplicaSet", "chat-6b9"), {"pod-template-hash": "6b9"}, {}, "chat"),
        (("ReplicaSet", "chat-7c9f6d8b5"), {}, {}, "chat"),
        (("ReplicaSet", "chat-old"), {}, {("ReplicaSet", "llm", "chat-old"): ("Deployment", "c")}, "c"),
        (("ReplicaSet", "chat-stable"), {}, {}, "chat-stable"),
        (("Job", "nightly-29412345"), {}, {}, "nightly"),
        (("Job", "tune-1"), {}, {}, "tune-1"),
        (("Node", "n1"), {}, {}, "p"),
        (None, {}, {}, "p"),
        (None, {"leaderworkerset.sigs.k8s.io/name": "set"}, {}, "set"),
    ],
)
def test_the_owner_is_what_made_the_pod_in_the_end(owner, labels, owners, name):
    found = identity(a_pod("p", words=(), owner=owner, labels=labels), owners=owners)
    assert found.model == f"llm/{name}"


# Rules --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "model"),
    [
        (Rule("r", "label", r"(\w+)-v\d", key="app", model=r"team/\1"), "team/chat"),
        (Rule("r", "owner", "Deployment/(?P<what>.+)", model=r"\g<what>"), "front"),
        (Rule("r", "pod", r"llm/front-.*", model="by-pod"), "by-pod"),
        (Rule("r", "image", r".*/vllm-openai:(.*)", model=r"on-\1"), "on-v0.11.0"),
        (Rule("r", "command", r".*--model (\S+).*", model=r"\1-x"), "org/llama-x"),
        (Rule("r", "pod", ".*", namespace="ll.", model="there"), "there"),
    ],
)
def test_a_rule_names_the_model_before_anything_else(rule, model):
    pod = a_pod("front-1", labels={"app": "chat-v2"}, owner=("Deployment", "front"))
    found = identity(pod, rule)
    assert (found.model, found.by) == (model, 'rule "r"')


@pytest.mark.parametrize(
    "rule",
    [
        Rule("r", "label", "chat", key="app", model="x"),
        Rule("r", "label", ".*", key="missing", model="x"),
        Rule("r", "pod", ".*", namespace="l", model="x"),
    ],
)
def test_a_rule_matches_whole_values_only(rule):
    assert identity(a_pod(labels={"app": "chat-v2"}), rule).by == "--model"


def test_the_first_rule_that_matches_decides_and_one_without_a_model_says_that_it_is_no_llm():
    none = Rule("none", "pod", ".*")
    some = Rule("some", "pod", ".*", model="x", variant="big")
    assert identity(a_pod(), some, none).variant == "big"
    found = identity(a_pod(), none, some)
    assert (found.model, found.workload, found.by) == ("llm/llama-0", "other", 'rule "none"')


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Rule("bad", "pod", "(", model="x"), "no regular expression"),
        (Rule("bad", "pod", ".*", namespace="[", model="x"), "no regular expression"),
        (Rule("bad", "pod", ".*", model=r"\1"), "in the names that it gives"),
        (Rule("bad", "pod", ".*", model=r"\g<who>"), "in the names that it gives"),
    ],
)
def test_a_rule_that_is_wrong_is_left_out_and_told(rule, words):
    problems: set[str] = set()
    good = Rule("good", "pod", ".*", model="y")
    assert identity(a_pod(), rule, good, problems=problems).model == "y"
    (problem,) = problems
    assert problem.startswith('rule "bad" is left out: ')
    assert words in problem


def test_a_rules_pattern_is_tried_on_the_first_4096_characters():
    pod = a_pod(labels={"app": "a" * 5000})
    assert identity(pod, Rule("r", "label", "a{4096}", key="app", model="x")).model == "x"
