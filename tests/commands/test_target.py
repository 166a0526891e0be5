"""`manage.py target`: the same answer on a terminal, and its exit codes."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command

from sizing.models import BenchProfile, Node
from tests import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def fleet() -> None:
    chat = builders.profile()
    llama = builders.model("meta-llama/Llama-3.1-70B:fp8", default_profile=chat)
    tp4 = builders.variant(llama)
    builders.measurement(tp4, chat, "1180.5")
    node = builders.node()
    builders.node("gpu-b1", 2)
    builders.replica("llama-0", tp4, node, (0, 1, 2, 3))


MODEL = "meta-llama/Llama-3.1-70B:fp8"


def run(*words: str) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    try:
        call_command("target", *words, stdout=out, stderr=err, no_color=True)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


@pytest.mark.usefixtures("fleet")
def test_it_exits_0_where_it_fits() -> None:
    code, out, err = run(MODEL, "2361")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == f"{MODEL} needs 2 replicas for 2,361 tok/s; 1 runs: the other 1 fits"


@pytest.mark.usefixtures("fleet")
def test_it_exits_1_where_it_does_not_fit_and_says_why() -> None:
    code, out, err = run(MODEL, "5000")
    assert (code, err) == (1, "")
    lines = [line.rstrip() for line in out.splitlines()]
    assert lines[0] == f"{MODEL} needs 5 replicas for 5,000 tok/s; 1 runs: 1 of the other 4 fits"
    assert "  1 of 4 more replicas fits; 3 more need 4 free GPUs of one type on one node each" in lines
    assert "  1 node (gpu-b1): 2 such GPUs in all, 4 are needed on one node" in lines


@pytest.mark.usefixtures("fleet")
def test_what_is_served_is_said_to_be() -> None:
    _, out, _ = run(MODEL, "100")
    assert out.splitlines()[0] == f"{MODEL} needs 1 replica for 100 tok/s; 1 runs: served"


@pytest.mark.usefixtures("fleet")
def test_json_is_the_answer_of_the_api() -> None:
    code, out, _ = run(MODEL, "5000", "--json", "--utilization", "0.8")
    form = json.loads(out)
    assert code == 1
    assert (form["needed"], form["current"], form["more"], form["room"]) == (6, 1, 5, 1)
    assert "nodes" not in form
    assert [n["code"] for n in json.loads(run(MODEL, "5000", "--json", "--nodes")[1])["nodes"]] == [
        "open",
        "too_few_gpus",
    ]


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nobody", "5"], 'no model "nobody"'),
        ([MODEL, "NaN"], "tokens_per_sec must be a positive number"),
        ([MODEL, "5", "--profile", "x"], 'no profile "x"; there are chat'),
        ([MODEL, "5", "--utilization", "2"], "utilization must be a number in (0, 1], at least 0.000001"),
        ([MODEL, "5", "--as-if", "ready:gpu-z"], 'as_if "ready:gpu-z": no node "gpu-z"'),
    ],
)
def test_an_error_is_one_line_and_exit_2(words: list[str], message: str) -> None:
    assert run(*words) == (2, "", message + "\n")


@pytest.mark.usefixtures("fleet")
def test_what_is_supposed_is_said_first_and_answered() -> None:
    words = ("--as-if", "more_like:gpu-a1", "--as-if", "ended:llama-0")
    code, out, err = run(MODEL, "5000", *words)
    assert (code, err) == (1, "")
    assert out.splitlines()[:2] == [
        "as if there were one more node like gpu-a1 and llama-0 had ended:",
        f"{MODEL} needs 5 replicas for 5,000 tok/s; 0 run: 4 of the other 5 fit",
    ]
    form = json.loads(run(MODEL, "5000", "--json", *words)[1])
    assert (form["as_if"], form["room"]) == ([words[1], words[3]], 4)


@pytest.mark.usefixtures("fleet")
def test_every_node_can_be_listed() -> None:
    _, out, _ = run(MODEL, "5000", "--nodes")
    rows = [line.split()[:3] for line in out.splitlines() if line.startswith("gpu-")]
    assert rows == [["gpu-a1", "1", "open"], ["gpu-b1", "0", "too_few_gpus"]]


@pytest.mark.usefixtures("fleet")
def test_who_would_have_to_stop_is_shown_and_how_nodes_would_be_then() -> None:
    chat = BenchProfile.objects.get()
    urgent = builders.model("urgent", priority=10, default_profile=chat)
    builders.measurement(builders.variant(urgent), chat, "1000")
    batch = builders.variant(builders.model("batch"), "one", gpus=1)
    builders.measurement(batch, chat, "50")
    builders.replica("batch-0", batch, Node.objects.get(name="gpu-a1"), (4,))
    code, out, _ = run("urgent", "1000", "--nodes")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert code == 0
    assert lines[0] == (
        "urgent needs 1 replica for 1,000 tok/s; 0 run: the other 1 fits only by stopping 1 replica"
        " of lower priority"
    )
    assert "would have to stop (proven: nobody cheaper, and no fewer, would do):" in lines
    assert "batch-0 batch 0 50.0 gpu-a1" in lines
    assert "batch: 1 stopped, 0 left, minimum 0" in lines
    assert any(line.endswith("stops batch-0, then takes 1") for line in lines)
