"""`manage.py bench`: the same measurement from a terminal, and its exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from sizing.models import BenchProfile, MeasuredNode, Measurement, Node, Refresh, Replica
from tests import builders
from tests.measuring.simulated import simulated_replica

SHORT = ("--level", "2", "--highest", "1")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with simulated_replica(t0=3, a=0.2, model="llama") as address:
        yield address


@pytest.fixture
def fleet(db: None, url: str) -> None:
    chat = builders.profile(input_tokens=16, output_tokens=8, ttft_ms=200, itl_ms=50, arrival="concurrency")
    variant = builders.variant(builders.model(default_profile=chat), gpus=1)
    builders.replica("llama-0", variant, builders.node(), (0,), benchable=True, endpoint=url)


def run(*words: str) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    try:
        call_command("bench", *words, stdout=out, stderr=err, no_color=True)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


@pytest.mark.usefixtures("fleet")
def test_it_shows_what_it_measured_and_stores_nothing() -> None:
    code, out, err = run("llama", *SHORT)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert "Levels, in the order in which they were measured" in lines[0]
    assert any("1 stream " in line and " pass " in line for line in lines)
    assert lines[-1] == "not stored; --save stores it"
    assert any(line.startswith("llama (tp4) on chat: ") and " floor (at least " in line for line in lines)
    assert not Measurement.objects.exists()
    assert Refresh.objects.get().state == "done"


@pytest.mark.usefixtures("fleet")
def test_with_save_it_is_stored() -> None:
    code, out, _ = run("llama", "--save", *SHORT)
    measured = Measurement.objects.get()
    assert code == 0
    assert out.splitlines()[-1] == f"stored as measurement {measured.pk}"
    assert measured.levels.exists()
    assert Refresh.objects.get().trigger == "command"


@pytest.mark.usefixtures("fleet")
def test_as_json_it_gives_the_figure_and_each_level() -> None:
    code, out, err = run("llama", "--json", "--seed", "7", *SHORT)
    form = json.loads(out)
    assert (code, err) == (0, "")
    assert (form["model"], form["replica"], form["bound"], form["measurement"]) == (
        "llama",
        "llama-0",
        "floor",
        None,
    )
    assert form["levels"][0]["verdict"] == "pass"
    assert form["levels"][0]["load"] == 1


@pytest.mark.usefixtures("fleet")
def test_an_slo_that_is_never_met_exits_1() -> None:
    BenchProfile.objects.update(itl_ms=1)
    code, out, err = run("llama", "--save", *SHORT)
    assert (code, err) == (1, "")
    assert "llama (tp4) on chat: the SLO is not met at the lowest load tried: " in out
    assert Measurement.objects.get().slo_met is False


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("nobody",), 'no model "nobody"'),
        (("llama", "--profile", "x"), 'no profile "x"; there are chat'),
        (("llama", "--variant", "x"), 'llama has no variant "x"; there are tp4'),
        (("llama", "--replica", "x"), 'llama has no replica "x"'),
        (("llama", "--budget", "-1"), "--budget -1 is out of bounds"),
        (("llama", "--lowest", "0"), "--lowest 0 is out of bounds"),
        (("llama", "--lowest", "9", "--highest", "8"), "--lowest is above --highest"),
        (("llama", "--highest", "nan"), "--highest nan is out of bounds"),
    ],
)
def test_a_wrong_word_is_one_line_and_exit_2(words: tuple[str, ...], error: str) -> None:
    assert run(*words) == (2, "", f"{error}\n")
    assert not Refresh.objects.exists()


@pytest.mark.usefixtures("fleet")
def test_a_replica_that_may_not_be_measured_is_refused_with_the_reason() -> None:
    Replica.objects.update(benchable=False)
    assert run("llama") == (2, "", "no replica of llama (tp4) is marked benchable\n")
    Replica.objects.update(benchable=True)
    other = builders.variant(builders.model("qwen"), gpus=1)
    row = Refresh.objects.create(variant=other, profile=builders.profile("rag"), trigger="api")
    MeasuredNode.objects.create(node=Node.objects.get(), refresh=row)
    assert run("llama") == (2, "", f"waits: refresh {row.pk} measures on gpu-a1\n")
    assert list(Refresh.objects.all()) == [row]


@pytest.mark.usefixtures("fleet")
def test_a_replica_that_went_away_is_one_line_and_exit_2() -> None:
    Replica.objects.update(endpoint="http://127.0.0.1:9/v1")
    code, out, err = run("llama")
    assert (code, out) == (2, "")
    assert err == "http://127.0.0.1:9/v1/models cannot be reached: Connection refused\n"
    assert err.count("\n") == 1
    assert Refresh.objects.get().state == "failed"


def test_ctrl_c_keeps_the_finished_levels_and_says_so(tmp_path: Path, url: str) -> None:
    values = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    values |= {"DATA_DIR": str(tmp_path), "DATABASE_URL": ""}
    inventory = tmp_path / "fleet.yaml"
    inventory.write_text(
        f"""
version: 1
nodes: [{{name: n, gpus: [{{type: T, memory_mib: 1000}}]}}]
profiles:
  - {{name: p, input_tokens: 16, output_tokens: 8, slo: {{itl_ms: 50}}, arrival: concurrency}}
models: [{{name: llama, default_profile: p, variants: [{{name: v}}]}}]
replicas:
  - name: r
    model: llama
    variant: v
    endpoint: "{url}"
    benchable: true
    placement: [{{node: n, gpus: [0]}}]
"""
    )

    def manage(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "manage.py", *words],
            cwd=settings.BASE_DIR,
            env=values,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    assert manage("migrate", "-v0").wait(60) == 0
    assert manage("load_inventory", str(inventory)).wait(60) == 0
    bench = manage("bench", "llama", "--save")
    assert bench.stderr is not None
    first = bench.stderr.readline()
    assert first.startswith("level 1, 1 stream: pass, ")
    bench.send_signal(signal.SIGINT)
    out, err = bench.communicate(timeout=30)
    assert bench.returncode == 2
    assert err.splitlines()[-1].endswith(" kept in refresh 1, and nothing was stored as a measurement")
    assert "1 stream" in out
