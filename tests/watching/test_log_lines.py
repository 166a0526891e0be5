"""A log record is one line, says what it is about, and cannot be forged by what it quotes."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from llmgw_admin.log_lines import JsonLine, OneLine
from sizing.log_context import about, telling, valid_request_id


def record(message: str, *args: Any, **fields: Any) -> logging.LogRecord:
    made = logging.LogRecord("desk", logging.INFO, "", 0, message, args, None)
    made.created, made.msecs = 1_800_000_000.25, 250.0
    if fields:
        made.fields = fields
    return made


def test_a_line_carries_what_the_work_is_about_and_what_the_record_adds() -> None:
    with telling(request_id="r1", path="/nodes"), telling(task="sweep", refresh=7):
        assert OneLine().format(record("healed", user="ada lovelace")) == (
            '2027-01-15T08:00:00Z INFO desk [request_id=r1 task=sweep refresh=7 user="ada lovelace"]: healed'
        )
    assert about() == {}


def test_the_same_in_json_has_a_field_for_each() -> None:
    with telling(request_id="r1", path="/nodes"):
        assert json.loads(JsonLine().format(record("%s nodes", 3, status=200, duration_ms=1.5))) == {
            "time": "2027-01-15T08:00:00.250Z",
            "level": "INFO",
            "logger": "desk",
            "message": "3 nodes",
            "request_id": "r1",
            "path": "/nodes",
            "status": 200,
            "duration_ms": 1.5,
        }


def test_a_traceback_is_in_the_line_and_a_field_in_json() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        failed = logging.LogRecord("desk", logging.ERROR, "", 0, "it failed", (), (type(error), error, None))
    assert OneLine().format(failed).endswith("it failed | ValueError: two | lines")
    told = json.loads(JsonLine().format(failed))
    assert (told["message"], told["traceback"]) == ("it failed", "ValueError: two\nlines")


@pytest.mark.parametrize(
    "name",
    ["a\nb", "a\r\nb", "a\x1b[31mb", "a\x00b", "a\x85b", "a\u2028b", "a\u202eb", "a\u200bb", "a\ud800b"],
)
def test_what_a_name_holds_neither_ends_a_line_nor_reaches_a_terminal(name: str) -> None:
    said = record("model %s", name, user=name)
    for line in (OneLine().format(said), JsonLine().format(said)):
        assert line.isprintable(), line
        line.encode()
    assert json.loads(JsonLine().format(said))["user"] == name


def test_a_field_cannot_pretend_to_be_another() -> None:
    line = OneLine().format(record("hello", user="ada task=sweep]: forged"))
    assert line == '2027-01-15T08:00:00Z INFO desk [user="ada task=sweep]: forged"]: hello'


@pytest.mark.parametrize("text", ["", None, "a b", "a\nb", "ä", "x" * 65, "a=b", '"a"', "a/b"])
def test_an_id_that_is_no_plain_word_is_none(text: str | None) -> None:
    assert valid_request_id(text) == ""


def test_a_plain_word_is_an_id() -> None:
    assert valid_request_id("0af7651916cd43dd-8448.eb_1") == "0af7651916cd43dd-8448.eb_1"
