"""What a stream of events tells, cut anywhere and written in every way that servers write it."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sizing.measuring.loadgen.stream import ERROR_IN_STREAM, MALFORMED, MOST_EVENT, TOO_LARGE, Answer

ROLE = {"role": "assistant", "content": ""}


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice], **more}).encode() + b"\n\n"


def usage(**counts: Any) -> bytes:
    return b"data: " + json.dumps({"choices": [], "usage": counts}).encode() + b"\n\n"


def read(*pieces: bytes, most_tokens: int = 32) -> Answer:
    """Feed one piece each second, from second 1 on, then end."""
    answer = Answer(most_tokens)
    for second, piece in enumerate(pieces, 1):
        answer.feed(piece, float(second))
    answer.end(len(pieces) + 1.0)
    return answer


GOOD = (
    b": keep-alive\n\n"
    + chunk(ROLE)
    + chunk({"content": "one"})
    + b'data: {"choices": [{\ndata: "delta": {"content": " two"}\ndata: }]}\n\n'
    + chunk({}, "length")
    + usage(prompt_tokens=7, completion_tokens=3)
    + b"data: [DONE]\n\n"
)


def told(answer: Answer) -> tuple[Any, ...]:
    return (
        len(answer.times),
        answer.finish,
        answer.done,
        answer.prompt_tokens,
        answer.output_tokens,
        answer.fault,
    )


def test_a_whole_answer_is_read() -> None:
    assert told(read(GOOD)) == (2, "length", True, 7, 3, "")


def test_a_role_only_chunk_and_comments_do_not_end_ttft() -> None:
    answer = read(
        chunk(ROLE), b": keep-alive\n\n", chunk({"content": ""}), chunk({}), chunk({"content": "a"})
    )
    assert list(answer.times) == [5.0]


@pytest.mark.parametrize(
    "delta",
    [
        {"content": " "},
        {"content": None, "reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"refusal": "no"},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]},
    ],
)
def test_content_reasoning_refusals_and_tool_calls_are_tokens(delta: dict[str, Any]) -> None:
    assert list(read(chunk(ROLE), chunk(delta)).times) == [2.0]


@pytest.mark.parametrize("delta", [{"content": None}, {"tool_calls": []}, {"reasoning": ""}, {"name": "x"}])
def test_deltas_that_hold_nothing_are_no_tokens(delta: dict[str, Any]) -> None:
    assert not read(chunk(delta)).times


def test_the_answer_ends_with_its_last_token_or_the_chunk_that_says_why() -> None:
    assert read(chunk({"content": "a"}), chunk({"content": "b"}, "stop"), b"data: [DONE]\n\n").ended_at == 2.0
    assert read(chunk({"content": "a"}), chunk({}, "stop"), usage(completion_tokens=2)).ended_at == 2.0
    assert read(chunk({"content": "a"}), b"data: [DONE]\n\n").ended_at == 1.0


def test_an_answer_is_complete_by_its_finish_reason_or_by_done() -> None:
    assert read(chunk({"content": "a"}, "stop")).complete
    assert read(chunk({"content": "a"}), b"data: [DONE]\n\n").complete
    assert not read(chunk({"content": "a"})).complete


def test_the_last_usage_counts_and_cached_tokens_are_told() -> None:
    answer = read(
        usage(prompt_tokens=5, completion_tokens=1),
        usage(prompt_tokens=5, completion_tokens=9, prompt_tokens_details={"cached_tokens": 4}),
    )
    assert (answer.output_tokens, answer.cached_tokens) == (9, 4)


@pytest.mark.parametrize("bad", [-1, True, 1.5, "7", None, 10**30])
def test_a_usage_that_is_no_count_is_left_aside(bad: Any) -> None:
    assert read(usage(completion_tokens=bad)).output_tokens is None


@pytest.mark.parametrize(
    "event",
    [
        b'data: {"error": {"message": "out of memory", "code": 500}}\n\n',
        b'event: error\ndata: {"error": "out of memory"}\n\n',
        b'data: {"object": "error", "message": "out of memory"}\n\n',
    ],
)
def test_an_error_in_the_stream_is_told_in_the_servers_words(event: bytes) -> None:
    answer = read(chunk({"content": "a"}), event, b"data: [DONE]\n\n")
    assert (answer.fault, "out of memory" in answer.said) == (ERROR_IN_STREAM, True)


def test_a_request_that_the_server_aborted_is_an_error() -> None:
    assert read(chunk({"content": "a"}), chunk({}, "abort")).fault == ERROR_IN_STREAM


@pytest.mark.parametrize(
    "event",
    [
        b"data: {nonsense\n\n",
        b"data: []\n\n",
        b"data: 7\n\n",
        b'data: {"choices": [7]}\n\n',
        b'data: {"choices": 7}\n\n',
        b'data: {"choices": [{"delta": "x"}]}\n\n',
        b'data: {"choices": [], "usage": "x"}\n\n',
        b"data: \xff\xfe\n\n",
        b"data: " + b"[" * 100_000 + b"\n\n",
    ],
)
def test_a_chunk_of_another_form_is_malformed(event: bytes) -> None:
    assert read(event, chunk({"content": "a"}, "stop")).fault == MALFORMED


def test_half_a_chunk_at_the_end_is_a_cut_stream_and_not_a_malformed_one() -> None:
    answer = read(chunk({"content": "a"}), chunk({"content": "b"})[:-20])
    assert (answer.fault, answer.complete) == ("", False)


def test_an_end_without_its_empty_line_counts() -> None:
    assert read(chunk({"content": "a"}), b"data: [DONE]").done
    assert read(chunk({"content": "a"}), b"data: [DONE]\n").done


def test_data_over_several_lines_is_one_event() -> None:
    lines = json.dumps({"choices": [{"delta": {"content": "a"}}]}, indent=1).split("\n")
    event = "".join(f"data: {line}\n" for line in lines) + "\n"
    assert told(read(event.encode()))[0] == 1


def test_nothing_counts_after_done() -> None:
    assert told(read(GOOD, chunk({"content": "more"}), b"data: {nonsense\n\n")) == told(read(GOOD))


def test_an_event_that_does_not_end_is_too_large() -> None:
    assert read(b"data: " + b"x" * MOST_EVENT).fault == TOO_LARGE
    answer = Answer(32)
    for _ in range(40):
        answer.feed(b"x" * 65_536, 1.0)
    assert answer.fault == TOO_LARGE
    assert read(b"data: x\n" * (MOST_EVENT // 7 + 1)).fault == TOO_LARGE


def test_many_more_tokens_than_were_asked_are_too_large() -> None:
    assert read(chunk({"content": "a"}) * 24, most_tokens=4).fault == ""
    assert read(chunk({"content": "a"}) * 25, most_tokens=4).fault == TOO_LARGE


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@given(cuts=st.lists(st.integers(0, 2 * len(GOOD)), max_size=30))
def test_chunks_may_be_cut_anywhere_with_every_kind_of_line_end(newline: bytes, cuts: list[int]) -> None:
    data = GOOD.replace(b"\n", newline)
    places = sorted({0, *(cut for cut in cuts if cut < len(data)), len(data)})
    pieces = [data[begin:end] for begin, end in pairwise(places)]
    assert told(read(*pieces)) == told(read(GOOD))


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_a_single_cut_at_any_place_changes_nothing(newline: bytes) -> None:
    data = GOOD.replace(b"\n", newline)
    assert {told(read(data[:cut], data[cut:])) for cut in range(len(data))} == {told(read(GOOD))}


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_a_token_counts_when_its_event_ends(newline: bytes) -> None:
    event = chunk({"content": "a"}).replace(b"\n", newline)
    if newline == b"\r\n":
        event = event[:-1]  # the line ends with the CR; the LF that belongs to it may come later
    answer = Answer(32)
    answer.feed(event, 1.0)
    assert list(answer.times) == [1.0]


@given(st.lists(st.binary(max_size=60), max_size=20))
def test_no_bytes_break_the_reader(pieces: list[bytes]) -> None:
    read(*pieces)
    read(*(b"data: " + piece + b"\n\n" for piece in pieces))
