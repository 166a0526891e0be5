"""Bytes into plain values."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sizing.inventory.reading import read
from sizing.inventory.yaml_reading import UnreadableError


def problem(document: bytes) -> str:
    with pytest.raises(UnreadableError) as caught:
        read(document)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_numbers_with_a_fraction_or_an_exponent_are_exact_decimals() -> None:
    expected = {"a": Decimal("0.1"), "b": Decimal("1E+3"), "c": 12, "d": Decimal("-0.5")}
    assert read(b"a: 0.1\nb: 1e3\nc: 12\nd: -.5") == expected
    assert read(b'{"a": 0.1, "b": 1e3, "c": 12, "d": -0.5}') == expected
    assert isinstance(read(b"x: 1.0")["x"], Decimal)


def test_what_is_no_plain_number_stays_a_text() -> None:
    assert read(b"a: 010\nb: 1_000\nc: 0x1F\nd: 1:30\ne: .inf\nf: 2026-11-02T09:00:00Z\ng: '12'") == {
        "a": "010",
        "b": "1_000",
        "c": "0x1F",
        "d": "1:30",
        "e": ".inf",
        "f": "2026-11-02T09:00:00Z",
        "g": "12",
    }


def test_keys_are_texts_as_written() -> None:
    assert read(b"no: yes\n1: x\ntrue: null") == {"no": True, "1": "x", "true": None}


def test_nested_lists_and_mappings_come_out_as_written() -> None:
    assert read(
        b"a: [[], {}, [1, {b: ~}]]\nc: {d: {}}\ne:\n  - f: |\n      g\n    h: >-\n      i\n      j"
    ) == {
        "a": [[], {}, [1, {"b": None}]],
        "c": {"d": {}},
        "e": [{"f": "g\n", "h": "i j"}],
    }


def test_a_byte_order_mark_is_skipped() -> None:
    assert read(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}
    assert read(b"\xef\xbb\xbfa: 1") == {"a": 1}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"", "the document is empty"),
        (b"# nothing\n", "the document is empty"),
        (b"a: 1\n b: 2", "line 2, column 3: mapping values are not allowed in this context"),
        (b"a: [1", "line 2, column 1: while parsing a flow sequence did not find expected ',' or ']'"),
        (b"a: &x 1", "line 1, column 4: anchors and aliases are not read; write it out"),
        (b"a: *x", "line 1, column 4: anchors and aliases are not read; write it out"),
        (
            b"a: !!python/name:os.system x",
            "tags such as tag:yaml.org,2002:python/name:os.system are not read",
        ),
        (b"a: 1\nb:\n  c: 1\n  c: 2", 'line 4, column 3: duplicate key "c"'),
        (b'{"a": 1,\n "a": 2}', 'line 2, column 2: duplicate key "a"'),
        (b"? [a]\n: b", "line 1, column 3: a key must be a text"),
        (b"a: 1\n---\nb: 2", "line 2, column 1: a second document; only one is read"),
        (b'{"a": 1,}', "line 1, column 9: expecting property name enclosed in double quotes"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b'{"a": -Infinity}', "-Infinity is not a number"),
        (b'{"a": 1e99999999999999999999}', "1e99999999999999999999 is beyond all numbers"),
        (b"a: 1e99999999999999999999", "line 1, column 4: 1e99999999999999999999 is beyond all numbers"),
        (b"a: \xff", "line 1, column 4: this is not UTF-8"),
        ("a: 1".encode("utf-16"), "line 1, column 1: this is not UTF-8"),
        (b"a: b\nc: \x00", "line 2, column 4: control character U+0000"),
        ("ä: \x85".encode(), "line 1, column 4: control character U+0085"),
        (b"{" * 5, "line 1, column 2: expecting property name enclosed in double quotes"),
        (b'{"a":' * 50_000, "the document is nested too deeply"),
        (b"- " * 200 + b"x", "line 1, column 201: nested more than 100 levels deep"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_its_place(document: bytes, message: str) -> None:
    assert message in problem(document)


def test_a_very_long_number_is_refused_before_it_is_computed() -> None:
    assert "longer than 64 characters" in problem(b"a: " + b"9" * 1_000_000)
    assert "longer than 64 characters" in problem(b'{"a": ' + b"9" * 1_000_000 + b"}")
    assert "longer than 64 characters" in problem(b'{"a": 0.' + b"9" * 1_000_000 + b"}")


def test_a_document_above_the_limit_is_refused_unread() -> None:
    assert problem(b" " * (100 * 1024 * 1024 + 1)) == "the document is larger than 100 MiB"
