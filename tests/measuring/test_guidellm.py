"""GuideLLM as a maker of load, against a stand-in for its command."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from sizing.domain.levels import CONCURRENCY, POISSON, Level, Slo, judge
from sizing.measuring.guidellm import GuideLlm, maker
from sizing.measuring.seam import (
    Endpoint,
    Limits,
    Load,
    MeasuringError,
    Progress,
    Stopped,
    Watch,
    Workload,
)
from tests.measuring.processes import all_end
from tests.measuring.simulated import ROOT

STUB = Path(__file__).with_name("guidellm_stub.py")

SLO = Slo(ttft_ms=500, itl_ms=50)
LIMITS = Limits(SLO)
WORKLOAD = Workload(64, 32, seed=5, extras={"ignore_eos": True})
ENDPOINT = Endpoint("http://127.0.0.1:9/v1", "reports", key="a secret")


def program(folder: Path, text: str) -> str:
    """A program of these lines."""
    path = folder / "program"
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.fixture
def stub(tmp_path: Path) -> str:
    return program(tmp_path, f'#!/bin/sh\nexec "{sys.executable}" "{STUB}" "$@"\n')


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def run(binary: str, model: str = "reports", watch: Watch = lambda progress: True) -> Level:
    endpoint = replace(ENDPOINT, model=model)
    return GuideLlm(binary).run_level(endpoint, WORKLOAD, Load(POISSON, 4), LIMITS, watch)


def refusal(binary: str, model: str = "reports") -> str:
    with pytest.raises(MeasuringError) as refused:
        run(binary, model)
    text = str(refused.value)
    assert "\n" not in text
    return text


def test_the_name_holds_the_version(stub):
    assert GuideLlm(stub).name == "guidellm 0.8.1"


def test_a_missing_program_is_refused():
    with pytest.raises(MeasuringError) as refused:
        _ = GuideLlm("/nowhere/guidellm").name
    assert str(refused.value) == "GuideLLM cannot be run as /nowhere/guidellm: No such file or directory"


def test_another_program_is_refused():
    with pytest.raises(MeasuringError) as refused:
        _ = GuideLlm("/bin/true").name
    assert str(refused.value) == "/bin/true is no GuideLLM: it does not tell its version"


def test_a_level_is_read_from_the_report(stub):
    level = run(stub)
    assert (level.arrival, level.load) == (POISSON, 4)
    assert (level.sent, level.completed, level.failed, level.cut) == (11, 8, 3, 1)
    assert level.conform == 8
    assert level.failures == {"http 500": 3}
    assert (level.sent_per_sec, level.delay_p95_s) == (None, 0.0092)
    assert level.all_tokens == 94
    assert level.counted
    assert level.tok_per_sec == 20.0471


def test_a_closed_loop_tells_how_fast_it_sent(stub):
    level = GuideLlm(stub).run_level(ENDPOINT, WORKLOAD, Load(CONCURRENCY, 8), LIMITS, lambda progress: True)
    assert (level.arrival, level.load) == (CONCURRENCY, 8)
    assert level.sent_per_sec == pytest.approx(9 / 3.0927)


def test_a_level_that_ended_in_its_warm_up_tells_what_failed(stub):
    level = run(stub, "gives up in the warm-up")
    assert (level.sent, level.completed, level.failed, level.cut) == (15, 11, 4, 1)
    assert level.failures == {"http 500": 4}
    assert (level.tok_per_sec, level.conform) == (None, None)
    assert judge(level, SLO).why == "26.7 % of the requests failed, at most 1 % may"


def test_a_run_that_lost_its_schedule_is_done_again_with_other_prompts(stub):
    assert run(stub, "keeps its schedule at last").delay_p95_s == 0.01


def test_a_run_that_never_keeps_its_schedule_is_refused(stub):
    said = "guidellm 0.8.1 sent all requests at once in 3 runs, not as planned"
    assert refusal(stub, "never keeps its schedule") == said


def test_a_report_of_another_form_is_refused(stub):
    assert refusal(stub, "reports nonsense").startswith(
        "GuideLLM's report is not of the known form: KeyError("
    )


def test_no_report_after_an_interrupt_is_refused_without_the_key(stub):
    said = "guidellm 0.8.1 ended with code 1 and no report: KeyboardInterrupt: ***"
    assert refusal(stub, "is interrupted") == said


def test_no_report_after_success_is_refused(stub):
    assert refusal(stub, "ends") == "guidellm 0.8.1 ended with code 0 and no report: it said nothing"


def test_a_version_that_takes_other_options_is_refused(stub):
    said = "guidellm 0.8.1 ended with code 2 and no report, these settings are for 0.8.1: "
    assert refusal(stub, "takes no such option") == said + "Error: No such option '-c'"


def test_nobody_sees_the_key_or_other_secrets(stub, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "another secret")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    text = refusal(stub, "tells what others could see")
    seen = json.loads(text[text.index("{") :])
    assert seen["mode"] == "0o600"
    assert seen["argv"] == ["run", "-c", "level.json", "--disable-console"]
    assert not {"SECRET_KEY", "HTTP_PROXY"} & set(seen["environment"])
    assert {"HF_HUB_OFFLINE", "HOME", "PATH"} <= set(seen["environment"])


@pytest.mark.parametrize("model", ["reports", "is interrupted", "reports nonsense"])
def test_nothing_is_left_of_a_run(stub, scratch, model):
    try:
        run(stub, model)
    except MeasuringError:
        assert model != "reports"
    assert list(scratch.iterdir()) == []


def test_the_watcher_is_told_how_far_it_is(stub):
    told: list[Progress] = []

    def watch(progress: Progress) -> bool:
        told.append(progress)
        return True

    run(stub, "tells progress, then reports", watch)
    assert told[-1] == Progress(told[-1].seconds, 12, 8, 3, 18.43)
    assert told[-1].seconds > told[0].seconds >= 0


def test_a_watcher_ends_the_whole_group(stub, scratch):
    seen: dict[int, psutil.Process] = {}
    others = {child.pid for child in psutil.Process().children(recursive=True)}

    def watch(progress: Progress) -> bool:
        children = psutil.Process().children(recursive=True)
        seen.update({child.pid: child for child in children if child.pid not in others})
        return len(seen) < 3  # the leash, the program, and what it started

    with pytest.raises(Stopped):
        run(stub, "hangs", watch=watch)
    assert len(seen) >= 3
    assert all_end(seen.values())
    assert list(scratch.iterdir()) == []


def test_what_a_dead_run_left_behind_is_ended(stub):
    pid = int(refusal(stub, "leaves a process behind").rpartition(" ")[2])
    left = [psutil.Process(pid)] if psutil.pid_exists(pid) else []
    assert all_end(left)


def test_a_run_that_does_not_end_is_ended(stub, monkeypatch):
    monkeypatch.setattr(maker, "AROUND_S", -5.5)  # of the 6.3 s that the load takes
    assert refusal(stub, "hangs") == "guidellm 0.8.1 did not end within 1 s"


def test_nothing_outlives_a_killed_owner(stub):
    code = (
        "from tests.measuring.test_guidellm import run\n"
        f"run({stub!r}, 'hangs', watch=lambda progress: print(progress.seconds, flush=True) or True)"
    )
    owner = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    try:
        group = descendants(owner.pid, 3)
    finally:
        owner.kill()
        owner.communicate()
    assert all_end(group)


def descendants(pid: int, count: int) -> list[psutil.Process]:
    """So many processes below one, as soon as they are there."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = psutil.Process(pid).children(recursive=True)
        if len(found) >= count:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{len(found)} processes, not {count}")


def test_an_endpoint_outside_the_networks_is_not_measured(stub):
    endpoint = Endpoint("http://192.0.2.1:8000/v1", "reports", ("10.0.0.0/8",))
    with pytest.raises(MeasuringError, match=r"^192\.0\.2\.1 is outside the networks"):
        GuideLlm(stub).run_level(endpoint, WORKLOAD, Load(POISSON, 4), LIMITS, lambda progress: True)
