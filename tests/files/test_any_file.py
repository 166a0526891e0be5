"""Whatever is done to a file: its points, or one line that says why there are none."""

from __future__ import annotations

import gzip
import json
from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sizing.measuring.files import FileResult, Meta, levels_csv, read_results, report_json, result_form
from sizing.measuring.files.points import DEFAULT_SLO
from tests.files.builders import ALL, only
from tests.files.test_reports import CLOSED, META, OPEN, YAML

TEXTS = {name: doc if isinstance(doc, str) else json.dumps(doc) for name, doc in ALL.items()}
TEXTS["report"] = report_json([OPEN, CLOSED], META)
TEXTS["yaml"] = YAML
DOCUMENTS = {name: json.loads(text) for name, text in TEXTS.items() if text[0] in "{["}

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.sampled_from(
        [0, 0.0, 1e-300, 5e-324, 1e14, 10**400, "", "inf", "NaN", "poisson", [], {}, [{}], {"a": []}]
    ),
    st.text(max_size=5),
    st.lists(st.floats(), max_size=3),
)


def check(result: FileResult) -> None:
    """A result is points that can be shown as JSON, or an error in one line that names the file."""
    form = result_form(result)
    json.dumps(form, allow_nan=False)
    json.dumps([point.level.as_dict() for point in result.points], allow_nan=False)
    if result.error is not None:
        assert result.error.startswith("f.json: ")
        assert result.error.isprintable()
        assert result.points == ()
        return
    assert result.points
    assert all(point["verdict"] in {"pass", "fail", "unknown", "invalid"} for point in form["points"])
    levels = [point.level for point in result.points]
    levels_csv(levels, Meta("m", "m"), DEFAULT_SLO)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [place for key, child in items for place in places(child, (*path, key))]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A document of any kind in which one to three values were replaced or removed."""
    document = json.loads(json.dumps(DOCUMENTS[draw(st.sampled_from(sorted(DOCUMENTS)))]))
    for _ in range(draw(st.integers(1, 3))):
        *above, last = draw(st.sampled_from(places(document) or [(None,)]))
        if last is None:
            break
        parent = document
        for key in above:
            parent = parent[key]
        if draw(st.booleans()):
            parent[last] = deepcopy(draw(ODD))
        else:
            del parent[last]
    return json.dumps(document)


@settings(max_examples=400, deadline=None)
@given(mutated())
def test_any_value_anywhere_gives_points_or_a_clean_refusal(text):
    check(read_results("f.json", text.encode()))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(TEXTS)), st.data())
def test_a_file_cut_off_or_with_other_bytes_gives_points_or_a_clean_refusal(name, data):
    text = TEXTS[name].encode()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 20)))
    insert = data.draw(
        st.one_of(st.binary(max_size=4), st.sampled_from([b'"', b"}", b"]", b"\\", b"\n", b","]))
    )
    check(read_results("f.json", text[:start]))
    check(read_results("f.json", text[:start] + insert + text[end:]))
    check(read_results("f.json", gzip.compress(text)[:start]))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_give_a_clean_refusal(data):
    check(read_results("f.json", data))


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(DOCUMENTS)), st.sampled_from(sorted(DOCUMENTS)))
def test_joined_files_give_the_points_of_both(first, second):
    joined = read_results("f.json", f"{TEXTS[first]}\n{TEXTS[second]}".encode())
    check(joined)
    apart = [read_results("f.json", TEXTS[name].encode()) for name in (first, second)]
    assert len(joined.points) == sum(len(result.points) for result in apart)


def test_every_text_here_can_be_read():
    for name, text in TEXTS.items():
        assert read_results(name, text.encode()).error is None
    assert only(TEXTS["vllm"]).output_tok_s == 256.0
