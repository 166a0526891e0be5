"""`manage.py import_bench`: its lines, its JSON and its exit codes."""

from __future__ import annotations

import json
import os
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from sizing.models import BenchFile, BenchImport, Measurement
from tests import builders
from tests.files import builders as results
from tests.imports.files import rate, slow, streams

DATE = "20250630-100000"
CUT_OFF = "line 1: the JSON that begins here is cut off; its end was expected"


def run(*words: Any) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    try:
        call_command("import_bench", *map(str, words), stdout=out, stderr=err, no_color=True)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three levels of one open-loop sweep, of which the last fails, and a file that is cut off."""
    documents = {
        "rate2": rate(2, 60, date=DATE),
        "rate4": rate(4, 120, date=DATE),
        "rate8": slow(rate(8, 200, date=DATE)),
    }
    for name, document in documents.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    (tmp_path / "broken.json").write_text("{")
    return tmp_path


@pytest.fixture
def right(folder: Path) -> list[str]:
    return [str(folder / f"rate{n}.json") for n in (8, 2, 4)]


@pytest.fixture
def fleet(db: None) -> None:
    chat = builders.profile(input_tokens=64, output_tokens=32, ttft_ms=500, itl_ms=50)
    builders.variant(builders.model(default_profile=chat))


# Without a database ----------------------------------------------------------------------------------


def test_a_dry_run_as_json_needs_no_model_and_no_database(right: list[str]) -> None:
    code, out, err = run(*right, "--dry-run", "--json")
    files = json.loads(out)
    assert (code, err) == (0, "")
    assert [file["file"] for file in files] == right
    assert {(file["tool"], file["error"]) for file in files} == {("vllm bench serve", None)}
    assert [list(file) for file in files] == [["file", "tool", "points", "warnings", "error"]] * 3
    (point,) = files[1]["points"]
    assert (point["verdict"], point["why"]) == ("pass", "every limit met at p95")
    assert (point["request_rate_target"], point["concurrency"], point["output_tok_s"]) == (2, None, 60.0)
    assert point["ttft_ms"] == {"mean": 42.0, "p50": 40.0, "p95": 60.0, "p99": 70.0}
    assert (point["isl_mean"], point["osl_mean"], point["failed"]) == (64.0, 32.0, 0)
    assert files[0]["points"][0]["verdict"] == "fail"


def test_a_path_stands_in_the_json_as_it_was_given(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 120) / ("y" * 120 + ".json")
    path.parent.mkdir()
    path.write_text(json.dumps(rate(2, 60)))
    _, out, _ = run(path, "--dry-run", "--json")
    assert json.loads(out)[0]["file"] == str(path)


def test_a_broken_file_is_one_line_and_the_others_are_shown(folder: Path, right: list[str]) -> None:
    broken = folder / "broken.json"
    code, out, err = run(broken, *right, "--dry-run", "--json")
    assert (code, err) == (2, f"{broken}: {CUT_OFF}\n")
    assert [file["error"] for file in json.loads(out)] == [f"{broken}: {CUT_OFF}", None, None, None]
    code, out, _ = run(broken, *right, "--dry-run")
    assert code == 2
    assert "rate4.json │ 4 requests/s" in out


def test_broken_files_that_are_left_out_on_purpose_are_no_error(folder: Path, right: list[str]) -> None:
    code, out, err = run(folder / "broken.json", *right, "--dry-run", "--json", "--leave-out-broken")
    assert (code, err) == (0, "")
    assert json.loads(out)[0]["error"] == f"{folder / 'broken.json'}: {CUT_OFF}"


def test_a_table_and_the_figure_of_each_sweep_are_shown(folder: Path, right: list[str]) -> None:
    (folder / "s8.json").write_text(json.dumps(streams(8, 256)))
    code, out, err = run(*right, folder / "s8.json", "--dry-run")
    lines = [" ".join(line.replace("│", " ").split()) for line in out.splitlines()]
    assert (code, err) == (0, "")
    rows = [line for line in lines if line.startswith(("rate", "s8"))]
    assert rows == [
        "rate2.json 2 requests/s 60.0 80 0 60.0 29.0 – pass every limit met at p95",
        "rate4.json 4 requests/s 120.0 80 0 60.0 29.0 – pass every limit met at p95",
        "rate8.json 8 requests/s 200.0 80 0 900.0 29.0 – fail TTFT of 800 ms is beyond 500 ms",
        "s8.json 8 streams 256.0 80 0 60.0 29.0 – pass every limit met at p95",
    ]
    assert lines[-3:] == [
        "open loop, 3 levels: 120.0 tok/s a replica, edge (120 tok/s; the next level tried, 200, failed)",
        "closed loop, 1 level: 256.0 tok/s a replica, floor (at least 256 tok/s; no higher level was tried)",
        "not stored: this is a dry run",
    ]


def test_a_percentile_that_is_not_there_gives_way_to_one_that_tells(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(results.inferencex()))
    _, out, _ = run(path, "--dry-run")
    assert " p99 70.0 │" in out


def test_what_is_odd_about_several_files_is_said_once(folder: Path) -> None:
    for n in (1, 2):
        (folder / f"s{n}.json").write_text(json.dumps(rate(n, 30 * n, max_concurrency=9)))
    _, out, _ = run(folder / "s1.json", folder / "s2.json", "--dry-run")
    assert "in 2 files: at most 9 requests at once: the cap may have held requests back" in out.splitlines()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("none.json", "No such file or directory"),
        ("", "a file was expected, this is a folder"),
        ("pipe", "a regular file was expected"),
        ("large.json", "at most 50 MiB were expected"),
        ("nul\0.json", "embedded null byte"),
    ],
)
def test_what_is_no_file_to_read_is_one_line(folder: Path, name: str, reason: str) -> None:
    os.mkfifo(folder / "pipe")
    with (folder / "large.json").open("wb") as large:
        large.truncate(50 * 1024 * 1024 + 1)
    path = str(folder / name) if name else str(folder)
    code, out, err = run(path, "--dry-run", "--json")
    shown = path.replace("\0", "\\x00")
    assert (code, err) == (2, f"{shown}: {reason}\n")
    assert json.loads(out) == [
        {"file": path, "tool": None, "points": [], "warnings": [], "error": f"{shown}: {reason}"}
    ]


def test_a_name_with_control_characters_stays_on_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a\n\x1b[31m.json"
    path.write_text("{")
    _, _, err = run(path, "--dry-run")
    assert err == f"{tmp_path}/a\\n\\x1b[31m.json: {CUT_OFF}\n"


def test_without_a_file_it_is_one_line_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--dry-run")[0] == 2
    assert capsys.readouterr().err.count("\n") == 1


# Stored ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("fleet")
def test_it_is_stored_for_the_model_its_variant_and_profile(right: list[str]) -> None:
    code, out, err = run(*right, "--model", "llama", "--variant", "tp4", "--profile", "chat")
    measured = Measurement.objects.get()
    assert (code, err) == (0, "")
    assert out.splitlines()[-2:] == [
        "llama (tp4) on chat: open loop, 3 levels: 120.0 tok/s a replica, edge"
        " (120 tok/s; the next level tried, 200, failed)",
        f"stored as measurement {measured.pk} of llama (tp4) on chat, measured 2025-06-30 10:00 UTC",
    ]
    assert (measured.source, measured.bound, measured.levels.count()) == ("vllm", "edge", 3)
    assert [file.name for file in measured.files.all()] == right
    assert BenchImport.objects.get().trigger == "command"


@pytest.mark.usefixtures("fleet")
def test_as_json_it_gives_the_sweep_and_what_was_stored(right: list[str]) -> None:
    code, out, err = run(*right, "--model", "llama", "--json")
    form = json.loads(out)
    assert (code, err) == (0, "")
    assert [file["file"] for file in form["files"]] == right
    assert form["sweeps"] == [
        {
            "arrival": "poisson",
            "levels": 3,
            "tok_per_sec": 120.0,
            "bound": "edge",
            "load": 4.0,
            "bracket": "120 tok/s; the next level tried, 200, failed",
            "warnings": [],
            "counts": True,
        }
    ]
    assert (form["refused"], form["warnings"]) == ([], [])
    assert form["measurement"] == Measurement.objects.get().pk


@pytest.mark.usefixtures("fleet")
def test_a_dry_run_for_a_model_stores_nothing(right: list[str]) -> None:
    code, out, _ = run(*right, "--model", "llama", "--dry-run")
    assert (code, out.splitlines()[-1]) == (0, "not stored: this is a dry run")
    assert not BenchImport.objects.exists()
    assert not Measurement.objects.exists()


@pytest.mark.usefixtures("fleet")
def test_a_profile_alone_judges_a_dry_run(right: list[str]) -> None:
    builders.profile("quick", input_tokens=64, output_tokens=32, ttft_ms=50)
    code, out, _ = run(*right, "--profile", "quick", "--dry-run", "--json")
    assert code == 0
    assert {file["points"][0]["verdict"] for file in json.loads(out)} == {"fail"}


@pytest.mark.usefixtures("fleet")
def test_with_a_broken_file_nothing_is_stored_unless_it_is_left_out(folder: Path, right: list[str]) -> None:
    broken = folder / "broken.json"
    code, out, err = run(*right, broken, "--model", "llama")
    assert (code, err) == (2, f"{broken}: {CUT_OFF}\nnothing was stored\n")
    assert "rate4.json" in out
    assert not BenchImport.objects.exists()
    code, out, err = run(*right, broken, folder / "none.json", "--model", "llama", "--leave-out-broken")
    assert (code, err) == (0, "")
    measured = Measurement.objects.get()
    assert measured.warnings == [
        f"left out: {broken}: {CUT_OFF}",
        f"left out: {folder}/none.json: No such file or directory",
    ]
    assert BenchFile.objects.count() == 3
    assert f"warning: left out: {broken}: {CUT_OFF}" in out.splitlines()


@pytest.mark.usefixtures("fleet")
def test_another_shape_is_refused_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(rate(2, 60, date=DATE, total_input_tokens=8000)))
    line = "other shape: 100 input tokens a request where chat has 64"
    for words in ((), ("--dry-run",)):
        code, _, err = run(path, "--model", "llama", *words)
        assert (code, err.splitlines()[0]) == (2, f"{path}: {line}")
    assert not BenchImport.objects.exists()
    code, out, _ = run(path, "--model", "llama", "--force")
    assert (code, Measurement.objects.get().warnings) == (0, [line])
    assert f"warning: {line}" in out.splitlines()


@pytest.mark.usefixtures("fleet")
def test_an_slo_that_was_not_met_is_stored_as_such(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(slow(rate(2, 60))))
    code, out, _ = run(path, "--model", "llama")
    assert code == 0
    assert (
        "llama (tp4) on chat: open loop, 1 level:"
        " not met at the lowest load tried: TTFT of 800 ms is beyond 500 ms"
    ) in out.splitlines()
    assert Measurement.objects.get().slo_met is False


@pytest.mark.usefixtures("fleet")
def test_a_newer_measurement_is_told_to_count(right: list[str]) -> None:
    run(*right, "--model", "llama")
    first = Measurement.objects.get()
    newer = builders.measurement(first.variant, first.profile, at=first.measured_at.replace(month=12, day=1))
    _, out, _ = run(*right, "--model", "llama")
    assert out.splitlines()[-1] == f"measurement {newer.pk} is newer, so it counts"


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            (),
            "name the model that was measured, its variant, and the bench profile\nmodel: is missing",
        ),
        (("--model", "nobody"), 'no model "nobody"'),
        (("--model", "llama", "--variant", "x"), 'llama has no variant "x"; there are tp4'),
        (("--model", "llama", "--profile", "x"), 'no profile "x"; there are chat'),
        (("--profile", "x", "--dry-run"), 'no profile "x"; there are chat'),
    ],
)
def test_a_wrong_word_is_one_line_and_exit_2(right: list[str], words: tuple[str, ...], error: str) -> None:
    assert run(*right, *words) == (2, "", f"{error}\n")
    assert not BenchImport.objects.exists()


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize("words", [(), ("--dry-run",)])
def test_a_file_that_is_named_twice_is_refused(right: list[str], words: tuple[str, ...]) -> None:
    code, _, err = run(right[0], right[0], "--model", "llama", *words)
    line = f"{right[0]} (2): each file once was expected, this is {right[0]} again"
    assert (code, err.splitlines()[0]) == (2, line)
    assert not BenchImport.objects.exists()


@pytest.mark.usefixtures("fleet")
def test_the_time_may_be_declared_where_the_files_do_not_say_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(rate(2, 60, date=None)))
    code, _, err = run(path, "--model", "llama", "--measured-at", "2999-01-01")
    assert (code, err) == (
        2,
        "a time of measurement that has passed was expected, not 2999-01-01 00:00 UTC\n",
    )
    code, out, _ = run(path, "--model", "llama", "--measured-at", "2025-06-30T10:00+02:00")
    assert (code, Measurement.objects.get().warnings) == (0, [])
    assert "measured 2025-06-30 08:00 UTC" in out


def test_a_dry_run_takes_no_more_files_than_are_stored_at_once(right: list[str]) -> None:
    assert run(*[right[0]] * 101, "--dry-run") == (
        2,
        "",
        "101 files were given; at most 100 are taken at once\n",
    )


def test_an_empty_name_is_no_folder() -> None:
    code, _, err = run("", "--dry-run")
    assert (code, err) == (2, '"": the name of a file was expected\n')
