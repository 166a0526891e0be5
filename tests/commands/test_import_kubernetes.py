"""`manage.py import_kubernetes`: its lines, its JSON and its exit codes."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError

from sizing.models import ClusterImport, Node, Replica
from sizing.services import cluster_imports, kubernetes
from tests.cluster_lists import LLAMA, as_bytes, node, pod, small

ROOT = Path(__file__).parents[2]


def run(*words: Any) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    try:
        call_command("import_kubernetes", *map(str, words), stdout=out, stderr=err, no_color=True)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


@pytest.fixture
def give(tmp_path: Path) -> Any:
    def written(content: bytes, name: str = "cluster.json") -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return written


# Looked at -------------------------------------------------------------------------------------------


def test_a_dry_run_as_json_needs_no_database(give: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without the fixture of the database every query is an error; this one is as of a desk without tables.
    def away(*args: Any, **options: Any) -> Any:
        raise OperationalError("no such table: sizing_node")

    monkeypatch.setattr(kubernetes, "consider", away)
    code, out, err = run(give(small()), "--dry-run", "--json")
    form = json.loads(out)
    assert (code, err) == (0, "")
    assert form["nodes"]["gpu-a1"]["resources"] == {
        "nvidia.com/gpu": {"capacity": 8, "allocatable": 8, "used": 4, "free": 4}
    }
    assert (form["changes"], form["refusals"], form["dry_run"]) == (None, [], True)
    assert form["warnings"][-1] == (
        "what would change is not known: the database has no tables yet; run `manage.py migrate`"
    )


@pytest.mark.database
def test_a_dry_run_as_json_works_beside_an_empty_database_file(give: Any, tmp_path: Path) -> None:
    environment = os.environ | {"DATA_DIR": str(tmp_path / "data"), "DATABASE_URL": ""}
    done = subprocess.run(
        [sys.executable, "manage.py", "import_kubernetes", "-", "--dry-run", "--json"],
        cwd=ROOT,
        input=small(),
        capture_output=True,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    form = json.loads(done.stdout)
    assert form["changes"] is None
    assert form["nodes"]["gpu-a1"]["type"] == "H100-80GB-HBM3"


@pytest.mark.django_db
def test_a_dry_run_as_json_tells_the_changes_and_changes_nothing(give: Any) -> None:
    code, out, err = run(give(small()), "--dry-run", "--json")
    form = json.loads(out)
    assert (code, err) == (0, "")
    assert form["changes"]["nodes"]["added"] == ["gpu-a1"]
    assert form["changes"]["replicas"]["added"] == ["llm/llama-0"]
    assert form["changes"]["models"]["added"] == [LLAMA]
    assert form["changes"]["rows"] is None
    assert not Node.objects.exists()
    assert not ClusterImport.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (as_bytes(node(), pod("llama-0"), left=412), "the list is incomplete"),
        (as_bytes(node()), "the list has nodes but no pods"),
    ],
)
def test_what_an_import_would_refuse_a_dry_run_reports_with_a_warning(
    give: Any, content: bytes, refusal: str
) -> None:
    code, out, err = run(give(content), "--dry-run", "--json")
    form = json.loads(out)
    assert (code, err) == (0, "")
    assert "gpu-a1" in form["nodes"]
    assert form["refusals"][0].startswith(refusal)
    assert form["warnings"]
    code, out, _ = run(give(content), "--dry-run")
    assert code == 0
    assert f"an import would be refused: {refusal}" in out
    assert json.loads(run(give(content), "--dry-run", "--json", "--partial")[1])["refusals"] == []


@pytest.mark.django_db
def test_a_dry_run_shows_devices_changes_and_what_is_ignored_line_by_line(give: Any) -> None:
    content = as_bytes(
        node(),
        node("gpu-a2", unschedulable=True),
        pod("llama-0"),
        pod("web-1", gpus=0),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}},
    )
    code, out, err = run(give(content), "--dry-run")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == (
        "H100-80GB-HBM3 (nvidia.com/gpu) on 2 nodes: 16 allocatable, 4 used, 12 free,"
        " 8 of them on closed nodes"
    )
    assert "nodes: 2 added (gpu-a1, gpu-a2)" in lines
    assert "replicas: 1 added (llm/llama-0)" in lines
    assert f"models: 1 added ({LLAMA})" in lines
    assert "ignored: 1 ConfigMap, says nothing about capacity" in lines
    assert lines[-1] == "nothing was changed: this is a dry run"
    assert not Node.objects.exists()


# Imported --------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_list_is_imported_and_written_into_the_history(give: Any) -> None:
    code, out, err = run(give(small()))
    assert (code, err) == (0, "")
    assert "nodes: 1 added (gpu-a1)" in out.splitlines()
    assert "dry run" not in out
    assert Node.objects.get().gpus.count() == 8
    assert Replica.objects.get().name == "llm/llama-0"
    row = ClusterImport.objects.get()
    assert (row.name, row.trigger, row.state, row.body) == ("cluster.json", "command", "done", None)
    assert row.message == "1 node added, 1 replica added, 1 model added"
    assert row.size == len(small())


@pytest.mark.django_db
def test_the_same_list_again_changes_nothing(give: Any) -> None:
    run(give(small()))
    code, out, _ = run(give(small()))
    assert code == 0
    assert "the inventory is like this already" in out.splitlines()


@pytest.mark.django_db
def test_what_moved_and_what_changed_is_told_with_what_it_was(give: Any) -> None:
    run(give(as_bytes(node(), node("gpu-a2"), pod("llama-0"))))
    moved = as_bytes(node(), node("gpu-a2", unschedulable=True), pod("llama-0", on="gpu-a2"))
    _, out, _ = run(give(moved), "--dry-run")
    lines = out.splitlines()
    assert "nodes: 1 changed (gpu-a2)" in lines
    assert "  gpu-a2: schedulable true → false" in lines
    assert "replicas: 1 moved (llm/llama-0)" in lines
    assert "  llm/llama-0: gpu-a1 GPU 0,1,2,3 → gpu-a2 GPU 0,1,2,3" in lines


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("content", "error"),
    [
        (as_bytes(node(), pod("llama-0"), left=412), "the list is incomplete"),
        (as_bytes(node()), "the list has nodes but no pods"),
    ],
)
def test_an_incomplete_list_is_refused_unless_it_is_taken_so(give: Any, content: bytes, error: str) -> None:
    for more in ((), ("--json",)):
        code, out, err = run(give(content), *more)
        assert (code, out) == (2, "")
        assert err.startswith(error)
        assert err.endswith("nothing was changed\n")
        assert err.count("\n") == 1
    assert not Node.objects.exists()
    assert not ClusterImport.objects.exists()
    assert run(give(content), "--partial")[0] == 0
    assert Node.objects.exists()
    assert ClusterImport.objects.get().partial


@pytest.mark.django_db
def test_as_json_an_import_prints_what_it_did(give: Any) -> None:
    code, out, _ = run(give(gzip.compress(small()), "cluster.json.gz"), "--json")
    form = json.loads(out)
    assert code == 0
    assert (form["dry_run"], form["refusals"]) == (False, [])
    assert form["changes"]["rows"]["created"]["nodes"] == 1


@pytest.mark.django_db
def test_a_pipe_of_kubectl_is_read_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(small())))
    code, _, err = run("-")
    assert (code, err) == (0, "")
    assert ClusterImport.objects.get().name == "standard input"


# Refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("none.json", "No such file or directory"),
        ("", "a file was expected, this is a folder"),
        ("nul\0.json", "no file can have that name"),
    ],
)
def test_what_is_no_file_is_one_line(tmp_path: Path, name: str, reason: str) -> None:
    path = f"{tmp_path}/{name}" if name else str(tmp_path)
    code, out, err = run(path, "--dry-run", "--json")
    assert (code, out) == (2, "")
    assert err.endswith(f": {reason}\n")
    assert err.count("\n") == 1


@pytest.mark.parametrize("content", [b"", b"{", b'{"kind": "Status", "message": "no leave"}', b"\x00\x01"])
def test_what_is_no_list_is_one_line_that_names_the_file(give: Any, content: bytes) -> None:
    path = give(content)
    for more in ((), ("--dry-run",), ("--dry-run", "--json")):
        code, out, err = run(path, *more)
        assert (code, out) == (2, "")
        assert err.startswith(f"{path}: ")
        assert err.count("\n") == 1


def test_without_a_file_it_is_one_line_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run()[0] == 2
    assert capsys.readouterr().err.count("\n") == 1


# Stopped ---------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_ctrl_c_while_it_is_written_leaves_nothing_half_done(
    give: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sizing.syncing import bringing

    def stop(*args: Any) -> Any:
        assert Node.objects.exists()  # it is written, but not for good
        raise KeyboardInterrupt

    monkeypatch.setattr(bringing, "_remember", stop)
    code, out, err = run(give(small()))
    assert (code, out, err) == (2, "", "stopped; nothing was changed\n")
    assert not Node.objects.exists()
    assert not ClusterImport.objects.exists()


@pytest.mark.database
@pytest.mark.parametrize("full", [True, False])
def test_output_that_cannot_be_written_does_not_hide_that_all_was_imported(
    tmp_path: Path, full: bool
) -> None:
    environment = os.environ | {"DATA_DIR": str(tmp_path / "data"), "DATABASE_URL": ""}
    command = [sys.executable, "manage.py"]
    subprocess.run([*command, "migrate"], cwd=ROOT, env=environment, check=True, capture_output=True)
    reader, writer = os.pipe()
    os.close(reader)
    full_disk = os.open("/dev/full", os.O_WRONLY)
    done = subprocess.run(
        [*command, "import_kubernetes", "-"],
        cwd=ROOT,
        input=small(),
        stdout=full_disk if full else writer,
        stderr=subprocess.PIPE,
        env=environment,
        check=False,
    )
    os.close(writer)
    os.close(full_disk)
    reason = b"No space left on device" if full else b"Broken pipe"
    assert done.returncode == 2
    assert done.stderr == b"all was imported; cannot write the output: " + reason + b"\n"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("broken", "line"),
    [
        (OperationalError("gone"), "all was imported; the database is not available: gone\n"),
        (KeyboardInterrupt(), "all was imported; stopped\n"),
    ],
)
def test_what_fails_after_the_import_says_that_all_was_imported(
    give: Any, monkeypatch: pytest.MonkeyPatch, broken: BaseException, line: str
) -> None:
    def fails(*args: Any, **options: Any) -> Any:
        raise broken

    monkeypatch.setattr(cluster_imports, "note", fails)
    assert run(give(small())) == (2, "", line)
    assert Node.objects.exists()


@pytest.mark.database
def test_ctrl_c_while_it_waits_for_its_input_is_one_line(tmp_path: Path) -> None:
    environment = os.environ | {"DATA_DIR": str(tmp_path / "data"), "DATABASE_URL": ""}
    process = subprocess.Popen(
        [sys.executable, "manage.py", "import_kubernetes", "-", "--dry-run", "--json"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert process.stdin is not None
    # More than a pipe holds: written through, it is being read, so Python's own start is over.
    process.stdin.write(b'{"kind": "List", "items": [' + b" " * 1_000_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (2, b"", b"stopped; nothing was changed\n")


@pytest.mark.django_db
def test_while_the_desk_follows_a_cluster_nothing_is_imported_and_a_dry_run_says_so(
    give: Any, settings: Any
) -> None:
    settings.KUBERNETES = replace(settings.KUBERNETES, mode="in-cluster")
    why = (
        "this desk follows its cluster live, so no list is imported: set KUBERNETES=off first,"
        " or only look at the list (--dry-run, in REST ?dry_run=1)"
    )
    code, out, err = run(give(small()))
    assert (code, out) == (2, "")
    assert err.strip().endswith(f"{why}; nothing was changed")
    assert not Node.objects.exists()
    code, out, err = run(give(small()), "--dry-run")
    assert (code, err) == (0, "")
    assert f"an import would be refused: {why}" in out.splitlines()
