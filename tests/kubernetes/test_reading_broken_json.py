"""JSON that is none is refused with the line and column, wherever it was cut off."""

from __future__ import annotations

import pytest

from sizing.inventory.kubernetes.reading import source
from tests.kubernetes.made import WHOLE, problem


@pytest.mark.parametrize(
    ("document", "place", "missing"),
    [
        (b'{"kind": "List",\n"items": [{"a": 1},\n', "line 3, column 1", "a value"),
        (
            b'{"kind": "List",\n"items": [{"a": 1}\n',
            "line 3, column 1",
            "a comma or the ] that closes the list",
        ),
        (
            b'{"kind": "List",\n"items": [{"a": 1}]',
            "line 2, column 20",
            "a comma or the } that closes the object",
        ),
        (b'{"kind": "List",\n"items": [{"a":', "line 2, column 16", "a value"),
        (b'{"kind": "List",\n"items": [{"a"', "line 2, column 15", "a colon"),
        (b'{"kind": "List",\n"items": [{"a": 1', "line 2, column 18", "a comma or a closing bracket"),
        (b'{"kind"', "line 1, column 8", "a colon"),
        (b"{", "line 1, column 2", "a key in double quotes"),
        (b"[\n", "line 2, column 1", "a value"),
    ],
)
def test_json_that_is_cut_off_is_told_with_what_is_missing(document: bytes, place: str, missing: str) -> None:
    said = f"not valid JSON: {place}: the file ends too early, it was cut off: {missing} is missing"
    assert problem(document) == said


def test_json_that_is_cut_off_inside_of_a_text_is_told_with_its_beginning() -> None:
    assert problem(b'{\n "kind": "List",\n "items": [\n  {\n   "me') == (
        "not valid JSON: line 5, column 4: the file ends inside of the text that begins here; it was cut off"
    )


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            b'{"kind": "List", "items": [{"a": 1} {"b": 1}]}',
            'line 1, column 37: a comma or the ] that closes the list is missing before "{"',
        ),
        (b'{"kind": "List", "items": [{"a": 1},]}', 'line 1, column 37: a value is missing before "]"'),
        (b'{"kind": "List", "items": [{"a" 1}]}', 'line 1, column 33: a colon is missing before "1"'),
        (b'{"kind": "List"} x', "line 1, column 18: here an object or a list should begin"),
        (b"{'kind': 'List'}", 'line 1, column 2: a key in double quotes is missing before "\'"'),
        (b'{"kind": "List", "items": [NaN]}', "line 1, column 28: in this object: NaN is no number"),
        (
            b'{"kind": "List", "items": [Infinity]}',
            "line 1, column 28: in this object: Infinity is no number",
        ),
        (b'{"kind": "a\tb"}', "line 1, column 12: invalid control character"),
        (b'{"kind": "\\x"}', "line 1, column 11: invalid \\escape"),
        (
            b'{"kind": "List",\n\n "items": [{"metadata": {"name": "a", "name": "b"}}]}',
            'line 3, column 12: this object has the key "name" twice',
        ),
        (b'{"kind": "A",\n "kind": "A"}', 'line 2, column 2: the key "kind" stands twice in this object'),
        (b'{"items": [],\n "items": []}', 'line 2, column 2: the key "items" stands twice in this object'),
        (b"[" + b"9" * 5000 + b"]", "line 1, column 2: in this object: a number has too many digits"),
        (b'{"kind": "List", "items": [' + b"[" * 5000, "line 1, column 28: this is nested too deeply"),
        (b"[" * 5000, "line 1, column 2: this is nested too deeply"),
        (b'{"a":' * 5000, "line 1, column 6: this is nested too deeply"),
    ],
)
def test_json_that_is_none_is_told_with_the_line(document: bytes, said: str) -> None:
    assert problem(document) == f"not valid JSON: {said}"


@pytest.mark.parametrize("piece", [1, 7, 64])
def test_the_place_is_right_wherever_the_pieces_end(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PIECE", piece)
    broken = WHOLE.replace(b'"cpu": "4"', b'"cpu" 4')
    line = WHOLE[: WHOLE.index(b'"cpu"')].count(b"\n") + 1
    assert problem(broken) == f'not valid JSON: line {line}, column 12: a colon is missing before "4"'
    flat = b'{"kind": "List", "items": [{"kind": "Node"}, {"kind": "Node"}, {"kind" 1}]}'
    assert problem(flat) == 'not valid JSON: line 1, column 72: a colon is missing before "1"'


def test_every_list_that_is_cut_off_is_refused() -> None:
    for end in range(1, len(WHOLE) - 1):
        message = problem(WHOLE[:end])
        assert message.startswith("not valid JSON: line ")
        assert "cut off" in message


def test_junk_behind_a_list_is_told() -> None:
    for junk in (b"\x00", b"}", b"]", b",", b"null", b"# hm", b"---\nkind: Node\n"):
        assert problem(WHOLE + junk).startswith("not valid JSON: line ")
