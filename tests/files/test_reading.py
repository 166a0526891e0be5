"""Telling files apart, encodings, limits, and refusals in one line."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from math import inf, nan
from typing import Any

import pytest

from sizing.domain.levels import Level, Spread
from sizing.measuring.files import FilePoint, FileRefused, read_results, result_form
from sizing.measuring.files.points import finite
from sizing.measuring.files.texts import MOST_BYTES
from sizing.measuring.files.values import share
from tests.files.builders import ALL, VLLM_CONSOLE, aiperf, inference_perf, only, read, sglang, vllm

VLLM = json.dumps(vllm())


@pytest.mark.parametrize("kind", sorted(ALL))
def test_every_kind_is_told_by_its_content(kind):
    result = read(ALL[kind], "anything.dat")
    assert result.error is None
    assert result.tool is not None
    assert result.tool.split()[0].split(".")[0].lower() == kind.split()[0]


def test_a_files_form_has_its_points_with_their_verdicts():
    form = result_form(read(vllm(), "a.json"))
    assert list(form) == ["file", "tool", "points", "warnings", "error"]
    assert (form["file"], form["tool"], form["error"]) == ("a.json", "vllm bench serve", None)
    assert (form["points"][0]["verdict"], form["points"][0]["why"]) == ("pass", "every limit met at p95")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_other_encodings_than_plain_utf_8_are_read(encoding):
    assert only(VLLM.encode(encoding)).output_tok_s == 256.0


def test_an_open_file_and_a_packed_one_are_read():
    assert read_results("a.json", io.BytesIO(VLLM.encode())).points == read(VLLM, "a.json").points
    assert only(gzip.compress(VLLM.encode())).output_tok_s == 256.0


def test_documents_of_several_kinds_in_one_file_are_each_read():
    result = read(f"{VLLM}\n\n{json.dumps(sglang())}\n")
    assert [(point.tool, point.place) for point in result.points] == [
        ("vllm bench serve", "line 1"),
        ("sglang.bench_serving", "line 3"),
    ]


def test_lists_within_documents_are_named_by_line_and_place():
    result = read(f"{VLLM}\n[{VLLM}, {json.dumps(vllm(completed='many'))}]")
    assert result.error == ('result.json: line 2: [1].completed: a number was expected, "many" found')


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "the file is empty; a load generator's result was expected"),
        (b" \n\t", "the file is empty; a load generator's result was expected"),
        (b"hello", "line 1: JSON or a printed result was expected"),
        (b"a,b\n1,2\n", "line 1: JSON or a printed result was expected"),
        (b"{", "line 1: the JSON that begins here is cut off; its end was expected"),
        (b'\n{"a": 1', "line 2: the JSON that begins here is cut off; its end was expected"),
        (b'{"a": "b', "line 1: a text that begins here does not end; a closing quote was expected"),
        (b'{"a": }', "line 1: JSON was expected (expecting value)"),
        (b'{"a": 1,\n "b" 2}', "line 2: JSON was expected (expecting ':' delimiter)"),
        (b"[1, 2}", "line 1: JSON was expected (expecting ',' delimiter)"),
        (VLLM.encode() + b" x", "line 1: JSON or a printed result was expected"),
        (b"{}", "the document: a load generator's result was expected, not an object of nothing"),
        (b"[]", "a load point was expected, the file has none"),
        (b"[[5]]", "[0][0]: a result object was expected, 5 found"),
        (b'["x"]', '[0]: a result object was expected, "x" found'),
        (b'{"a": 1, "b": 2}', "the document: a load generator's result was expected, not an object of a, b"),
        (b'{"a": 1, "a": 2}', 'line 1: an object of the document that begins here has "a" twice'),
        (b'\n\n{"a": "\xff"}', "line 3: text in UTF-8 was expected"),
        (b"\xff\xfe\x00\xd8", "starts like UTF-16 text, but is not; UTF-8 or UTF-16 was expected"),
        (b"\xff\xfe\x00\x00x\x00\x00\x00", "text in UTF-32; UTF-8 or UTF-16 was expected"),
        (b"\x1f\x8b\x08broken", "starts like a gzip file, but cannot be unpacked; a whole one was expected"),
        (
            gzip.compress(b"{}", mtime=0)[:-4],
            "starts like a gzip file, but cannot be unpacked; a whole one was expected",
        ),
        (b"PK\x03\x04...", "a zip archive; the files in it were expected one by one"),
        (b"[" * 65 + b"]" * 65, "line 1: nested more than 64 deep"),
        (b'{"benchmarks": [{"requests": ' + b"[" * 65, "line 1: nested more than 64 deep"),
        (b"[" + b"[]," * 400_001 + b"[]]", "line 1: more than 400,000 objects and lists"),
        (b"[" + b"1," * 3_000_001 + b"1]", "line 1: more than 3,000,000 values"),
        (b"[" + b'"",' * 500_001 + b"1]", "line 1: more than 500,000 keys and texts"),
        (b"[]" * 5_001, "line 1: more than 5,000 JSON documents"),
    ],
)
def test_a_file_that_cannot_be_read_gets_one_line_with_the_place(data, why):
    result = read(data)
    assert (result.error, result.points) == (f"result.json: {why}", ())


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"completed": "80"}, 'completed: a number was expected, "80" found'),
        ({"completed": True}, "completed: a number was expected, true found"),
        ({"completed": 79.5}, "completed: a whole number was expected, 79.5 found"),
        ({"completed": -1}, "completed: a number from 0 to 1e+15 was expected, -1 found"),
        ({"duration": 10**40}, "duration: a number from 0 to 1e+15 was expected, 1e+40 found"),
        ({"output_throughput": [1]}, "output_throughput: a number was expected, a list found"),
        ({"p95_ttft_ms": {}}, "p95_ttft_ms: a number was expected, an object found"),
        ({"model_id": 5}, "model_id: text was expected, 5 found"),
        ({"request_rate": []}, "request_rate: a number was expected, a list found"),
        ({"ttfts": 5, "output_lens": [1]}, "ttfts: a list was expected, 5 found"),
        ({"ttfts": [0.1, "x"], "output_lens": [1]}, 'ttfts[1]: a number was expected, "x" found'),
    ],
)
def test_a_value_of_another_type_is_refused_by_its_path(changes: dict[str, Any], why):
    assert read(vllm(**changes)).error == f"result.json: {why}"


def test_numbers_that_are_none_are_not_known():
    point = only(VLLM.replace('"mean_ttft_ms": 42.0', '"mean_ttft_ms": NaN').replace("60.0", "1e999"))
    assert point.level.ttft.mean is None
    assert 95.0 not in point.level.ttft.at


def test_a_number_of_thousands_of_digits_is_not_known():
    assert only(VLLM.replace('"duration": 10.0', f'"duration": {"9" * 5000}')).level.duration_s is None


def test_too_large_a_file_is_refused_before_and_after_unpacking():
    plain = b" " * (MOST_BYTES + 1)
    why = "larger than 64 MiB, the most that is read"
    assert read(plain).error == f"result.json: {why}"
    assert read(gzip.compress(plain, 1)).error == f"result.json: unpacked {why}"


def test_a_small_file_that_stands_for_a_huge_one_is_not_unpacked():
    bomb = gzip.compress(b" " * (16 * 1024 * 1024), 1) * 40
    tracemalloc.start()
    result = read(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.error == "result.json: unpacked larger than 64 MiB, the most that is read"
    assert peak < 3 * MOST_BYTES


def test_names_and_texts_in_messages_stay_on_one_line():
    result = read(vllm(completed="a\nb" + "x" * 200), "evil\x1b[31m\nname.json")
    assert result.error is not None
    assert result.error.startswith('evil\\x1b[31m\\nname.json: completed: a number was expected, "a\\nbxxx')
    assert result.error.isprintable()
    assert len(result.error) < 250


def test_a_broken_document_spoils_its_file():
    result = read(f"{VLLM}\n{VLLM[:-5]}")
    assert (result.points, result.error) == (
        (),
        "result.json: line 2: the JSON that begins here is cut off; its end was expected",
    )


def test_a_metric_of_the_wrong_form_is_named_where_it_stands():
    assert read(aiperf(request_count=5)).error == (
        "result.json: request_count: an object was expected, 5 found"
    )


def test_a_rate_beyond_all_numbers_is_not_known():
    document = sglang(duration=1e-320)
    del document["request_throughput"]
    level = only(document).level
    assert (level.duration_s, level.requests_per_sec) == (0.0, None)
    assert share(1e15, 5e-324) is None


@pytest.mark.parametrize(
    ("point", "name"),
    [
        (FilePoint("t", Level(tok_per_sec=inf)), "tok_per_sec"),
        (FilePoint("t", Level(ttft=Spread(None, {95.0: nan}))), "95.0"),
        (FilePoint("t", Level(), total_tok_s=inf), "total_tok_s"),
        (FilePoint("t", Level(), said={"shape": [1.0, -inf]}), "shape"),
    ],
)
def test_a_point_with_a_figure_that_is_not_finite_is_refused(point, name):
    with pytest.raises(FileRefused, match=f"^the document: a finite {name} was expected$"):
        finite(point)


def test_only_the_asked_rate_may_be_infinite():
    point = FilePoint("t", Level(), request_rate_target=inf)
    assert finite(point) is point


@pytest.mark.parametrize(
    ("document", "tool"),
    [
        (inference_perf(load_summary={"count": 80}), "inference-perf"),
        (vllm(completed="80"), "vllm bench serve"),
        (aiperf(request_count=5), "aiperf"),
        (VLLM_CONSOLE.replace("Successful requests", "Requests"), "vllm bench serve"),
        ({"a": 1}, None),
        ("{", None),
    ],
)
def test_a_refused_file_names_its_tool_where_it_was_recognized(document, tool):
    result = read(document)
    assert result.error is not None
    assert (result.tool, result_form(result)["tool"]) == (tool, tool)


def test_millions_of_plain_numbers_are_refused_in_little_memory():
    tracemalloc.start()
    result = read(b"[" + b"1," * 1_000_000 + b"1]")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.error == "result.json: [0]: a result object was expected, 1 found"
    assert peak < 40_000_000


def test_only_the_folder_right_above_makes_a_file_a_warm_ups():
    assert read(VLLM, "warmup/run/a.json").error is None
    assert read(VLLM, "run\\warmup\\a.json").error == (
        "run\\warmup\\a.json: a result was expected, this is a warm-up's"
    )
