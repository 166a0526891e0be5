"""load_inventory and dump_inventory."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import call_command

from sizing.models import Node
from tests.inventory.documents import load, revision, sound

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> tuple[int, str, str]:
    """The exit code, standard output and standard error of a command."""
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command(*arguments, stdout=out, stderr=err, no_color=True)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def file(folder: Path, document: Any) -> str:
    path = folder / "fleet.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def test_a_load_prints_counts_and_warnings(tmp_path: Path) -> None:
    code, out, err = run("load_inventory", file(tmp_path, sound(("nodes.0.pods", 1))))
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "nodes: 2 created",
        "gpus: 6 created",
        "profiles: 1 created",
        "models: 1 created",
        "variants: 4 created",
        "measurements: 1 created",
        "replicas: 2 created",
        "targets: 1 created",
        'warning: nodes[0]: replicas on node "gpu-a1" take 2 of 1 pods',
        "18 changes, 1 warning",
    ]


def test_errors_go_to_standard_error_one_a_line(tmp_path: Path) -> None:
    before = revision()
    document = sound(("nodes.0.ready", 1), ("replicas.0.placement.0.node", "gpu-z"))
    code, out, err = run("load_inventory", file(tmp_path, document))
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "nodes[0].ready: must be true or false, not 1",
        'replicas[0].placement[0].node: no node "gpu-z"',
        "the inventory has 2 errors; nothing was changed",
    ]
    assert revision() == before


def test_of_many_errors_the_first_hundred_are_printed(tmp_path: Path) -> None:
    _, _, err = run("load_inventory", file(tmp_path, {"version": 1, "nodes": [{}] * 311}))
    assert err.splitlines()[-3:] == [
        "nodes[99].name: is required",
        "and 211 more",
        "the inventory has 311 errors; nothing was changed",
    ]


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    assert run("load_inventory", str(path)) == (2, "", f"cannot read {path}: No such file or directory\n")
    assert run("load_inventory", str(tmp_path)) == (2, "", f"cannot read {tmp_path}: Is a directory\n")


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(b"version: 1\nnodes: *all\n")
    expected = "line 2, column 8: anchors and aliases are not read; write it out\n"
    assert run("load_inventory", str(path)) == (2, "", expected)


def test_a_dash_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO(b"version: 1\nnodes: [{name: gpu-a9}]\n")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=content))
    assert run("load_inventory", "-") == (0, "nodes: 1 created\n1 change, 0 warnings\n", "")


def test_replace_removes_what_the_file_leaves_out(tmp_path: Path) -> None:
    load({"version": 1, "nodes": [{"name": "old"}]})
    code, out, _ = run("load_inventory", file(tmp_path, {"version": 1}), "--replace")
    assert (code, out) == (0, "nodes: 1 removed\n1 change, 0 warnings\n")
    assert not Node.objects.exists()


@pytest.mark.parametrize("kind", ["yaml", "json"])
def test_a_dump_is_loaded_again_without_a_change(tmp_path: Path, kind: str) -> None:
    load(sound())
    code, out, err = run("dump_inventory", "--format", kind)
    assert (code, err) == (0, "")
    path = tmp_path / "dump"
    path.write_text(out, encoding="utf-8")
    assert run("load_inventory", str(path), "--replace")[1].splitlines()[-1] == "0 changes, 0 warnings"


def test_yaml_is_what_a_dump_is_by_default() -> None:
    assert run("dump_inventory")[1].splitlines() == [
        "version: 1",
        "nodes: []",
        "profiles: []",
        "models: []",
        "measurements: []",
        "replicas: []",
        "targets: []",
    ]


def test_the_demo_fleet_loads() -> None:
    demo = Path(__file__).parents[2] / "sizing" / "demo" / "fleet.yaml"
    code, _, err = run("load_inventory", str(demo))
    assert (code, err) == (0, "")
    assert run("load_inventory", str(demo), "--replace")[1].splitlines()[-1].startswith("0 changes, ")
