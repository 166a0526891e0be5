"""The simulated replica keeps its formula, tells the truth, and refuses what is no request."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.measuring.plain_client import (
    CHAT,
    COMPLETIONS,
    GOOD,
    Heard,
    ask,
    in_background,
    send,
    stream,
    usage,
    wait_until,
)
from tests.measuring.simulated import forget_truth, metric, simulated_replica, truth


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with simulated_replica(t0=9, a=1, p=0.1) as base:
        yield base


def test_a_lone_request_keeps_to_the_formula() -> None:
    with simulated_replica(t0=39, a=1, p=0.2) as url:
        heard = [stream(url, words=200, tokens=10) for _ in range(5)]
        requests = truth(url)["requests"]
    ttft = [(each.token_times[0] - each.sent) * 1000 for each in heard]
    tpot = [(each.token_times[-1] - each.token_times[0]) / 9 * 1000 for each in heard]
    assert min(ttft) == pytest.approx(39 + 1 + 200 * 0.2, rel=0.03)  # a busy machine only adds
    assert median(tpot) == pytest.approx(39 + 1, rel=0.03)
    assert median(each["ttft_ms"] for each in requests) == pytest.approx(80)
    assert median(each["tpot_ms"] for each in requests) == pytest.approx(40)
    assert median(each["e2e_ms"] for each in requests) == pytest.approx(80 + 9 * 40)
    assert min(each["written"]["ttft_ms"] for each in requests) == pytest.approx(80, rel=0.03)


def test_streams_that_are_always_busy_share_the_steps() -> None:
    n, t0, a = 10, 10, 1
    heard: list[Heard] = []
    with simulated_replica(t0=t0, a=a, p=0) as url:
        threads = in_background(*[lambda: heard.append(stream(url, tokens=150)) for _ in range(n)])
        time.sleep(0.4)
        forget_truth(url)
        begin = time.monotonic()
        time.sleep(2.2)
        told, end = truth(url), time.monotonic()
        for thread in threads:
            thread.join()
        tpot = [each["tpot_ms"] for each in truth(url)["requests"]]
    seen = sum(begin <= at < end for each in heard for at in each.token_times)
    expected = n / (t0 + a * n) * 1000
    assert told["totals"]["generation_tokens"] / told["seconds"] == pytest.approx(expected, rel=0.03)
    assert told["steps"]["mean_batch"] == n
    assert seen / (end - begin) == pytest.approx(expected, rel=0.03)
    assert median(tpot) == pytest.approx(t0 + a * n, rel=0.03)


def test_requests_beyond_the_slots_wait_first_come_first_served() -> None:
    with simulated_replica(t0=10, a=1, p=0, max_seqs=1) as url:
        threads = []
        for tokens in (20, 10, 5):
            threads += in_background(lambda tokens=tokens: stream(url, tokens=tokens))
            time.sleep(0.05)
        for thread in threads:
            thread.join()
        told = truth(url)
    first, second, third = told["requests"]
    assert [each["output_tokens"] for each in (first, second, third)] == [20, 10, 5]
    assert (told["steps"]["max_batch"], told["steps"]["max_waiting"]) == (1, 2)
    for before, after in ((first, second), (second, third)):
        free_at = before["arrived_s"] * 1000 + before["e2e_ms"]
        assert after["arrived_s"] * 1000 + after["queued_ms"] == pytest.approx(free_at, abs=0.01)


def test_a_step_prefills_no_more_than_its_budget() -> None:
    with simulated_replica(t0=10, a=1, p=0.1, prefill_budget=100) as url:
        stream(url, words=250, tokens=2)
        told = truth(url)
    assert told["requests"][0]["ttft_ms"] == pytest.approx(3 * 11 + 250 * 0.1)
    assert (told["steps"]["max_prefill_tokens"], told["steps"]["prefill_tokens"]) == (100, 250)


def test_a_chat_stream_begins_with_a_comment_and_the_role_alone(url: str) -> None:
    heard = stream(url, words=3, tokens=2)
    assert heard.headers["Content-Type"].startswith("text/event-stream")
    assert heard.text.startswith(": ")
    assert heard.deltas == [
        {"role": "assistant", "content": ""},
        {"content": " token"},
        {"content": " token"},
        {},
    ]
    assert heard.chunks[-2]["choices"][0]["finish_reason"] == "length"
    assert (heard.chunks[-1]["choices"], heard.chunks[-1]["usage"]) == ([], usage(3, 2))
    assert heard.events[-1] == "[DONE]"
    assert heard.times[0] < heard.times[1]


def test_a_completion_is_streamed_too(url: str) -> None:
    heard = stream(url, words=3, tokens=2, path=COMPLETIONS)
    texts = [chunk["choices"][0]["text"] for chunk in heard.chunks if chunk["choices"]]
    assert texts == [" token", " token", ""]
    assert heard.chunks[-1]["usage"] == usage(3, 2)


def test_usage_is_told_in_a_stream_only_where_it_is_asked_for(url: str) -> None:
    assert "usage" not in ask(url, stream=True).text


@pytest.mark.parametrize(("path", "kind"), [(CHAT, "chat.completion"), (COMPLETIONS, "text_completion")])
def test_an_answer_in_one_piece(url: str, path: str, kind: str) -> None:
    heard = ask(url, words=5, tokens=3, path=path)
    choice = heard.json["choices"][0]
    assert (heard.json["object"], heard.json["usage"]) == (kind, usage(5, 3))
    assert (choice["message"]["content"] if path == CHAT else choice["text"]) == " token" * 3
    assert choice["finish_reason"] == "length"


def test_the_newer_name_of_max_tokens_counts_and_so_do_parts_of_a_message(url: str) -> None:
    parts = [{"type": "text", "text": "one two"}, {"type": "text", "text": "three"}]
    body = {
        "model": "simulated",
        "max_completion_tokens": 2,
        "messages": [{"role": "user", "content": parts}],
    }
    assert send(url, CHAT, body).json["usage"] == usage(3, 2)


def test_it_tells_its_model_its_version_and_its_health() -> None:
    with simulated_replica(model="org/model:8b") as url:
        assert [each["id"] for each in send(url, "/models", method="GET").json["data"]] == ["org/model:8b"]
        root = url.removesuffix("/v1")
        assert send(root, "/version", method="GET").json == {"version": "1.0-simulated"}
        assert send(root, "/health", method="GET").status == 200
        assert stream(url, tokens=1, model="org/model:8b").chunks[0]["model"] == "org/model:8b"


def test_the_metrics_count_what_was_served() -> None:
    with simulated_replica(t0=9) as url:
        before = time.time()
        stream(url, words=30, tokens=3)
        ask(url, words=12, tokens=4)
        assert metric(url, "vllm:prompt_tokens_total") == 42
        assert metric(url, "vllm:generation_tokens_total") == 7
        assert metric(url, "vllm:request_success_total") == 2
        assert metric(url, "vllm:time_to_first_token_seconds_count") == 2
        assert 0.02 < metric(url, "vllm:time_to_first_token_seconds_sum") < 2
        assert metric(url, "vllm:prefix_cache_queries_total") == 42
        assert metric(url, "vllm:prefix_cache_hits_total") == 0
        assert metric(url, "process_start_time_seconds") == pytest.approx(before, abs=60)
        forget_truth(url)
        assert truth(url)["totals"]["generation_tokens"] == 0
        assert metric(url, "vllm:generation_tokens_total") == 7


def test_the_metrics_tell_who_runs_and_who_waits_and_a_client_that_leaves_is_forgotten() -> None:
    with simulated_replica(max_seqs=1) as url:
        place = urlsplit(url)
        connections = [
            http.client.HTTPConnection(str(place.hostname), place.port, timeout=20) for _ in range(3)
        ]
        body = {"model": "simulated", "prompt": "a", "max_tokens": 100_000, "stream": True}
        for connection in connections:
            connection.request("POST", "/v1/completions", json.dumps(body))
            assert connection.getresponse().status == 200
        assert metric(url, "vllm:num_requests_running") == 1
        assert metric(url, "vllm:num_requests_waiting") == 2
        for connection in connections:
            assert connection.sock is not None
            connection.sock.shutdown(socket.SHUT_RDWR)
            connection.close()
        wait_until(lambda: truth(url)["totals"]["cut"] == 3)
        assert (truth(url)["running"], truth(url)["waiting"]) == (0, 0)


# What it refuses


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "the body is not JSON"),
        (b"[" * 100_000, "the body is not JSON"),
        (b"\xff", "the body is not JSON"),
        ([], "the body is not a JSON object"),
        ({"messages": GOOD["messages"]}, "model: a name is missing"),
        ({"model": "simulated"}, "messages: not a list of messages"),
        (GOOD | {"messages": []}, "messages: not a list of messages"),
        (GOOD | {"messages": ["hello"]}, "messages[0]: not a message with a role"),
        (
            GOOD | {"messages": [{"role": "user"}]},
            "messages[0].content: neither a string nor a list of texts",
        ),
        (
            GOOD | {"messages": [{"role": "user", "content": [7]}]},
            "messages[0].content: neither a string nor a list of texts",
        ),
        (GOOD | {"max_tokens": 0}, "max_tokens: not a whole number from 1 to 1000000"),
        (GOOD | {"max_tokens": True}, "max_tokens: not a whole number from 1 to 1000000"),
        (
            GOOD | {"max_completion_tokens": "5"},
            "max_completion_tokens: not a whole number from 1 to 1000000",
        ),
        (GOOD | {"stream": "yes"}, "stream: neither true nor false"),
        (GOOD | {"stream_options": {"include_usage": True}}, "stream_options: only with stream"),
        (GOOD | {"stream": True, "stream_options": 5}, "stream_options: not an object"),
    ],
)
def test_a_bad_body_is_refused_in_one_sentence(url: str, body: Any, message: str) -> None:
    heard = send(url, CHAT, body)
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": 400}
    assert (heard.status, heard.json) == (400, {"error": error})


def test_a_prompt_that_is_no_text_is_refused(url: str) -> None:
    heard = send(url, COMPLETIONS, {"model": "simulated", "prompt": 7})
    assert (heard.status, heard.json["error"]["message"]) == (400, "prompt: not a string")


def test_another_model_another_path_and_too_much_are_refused(url: str) -> None:
    assert send(url, CHAT, GOOD | {"model": "other"}).json["error"]["code"] == 404
    assert send(url, "/embeddings", GOOD).json["error"]["code"] == 404
    assert send(url, CHAT, method="GET").json["error"]["code"] == 405
    assert send(url, CHAT, b" " * (16 * 1024 * 1024 + 1)).json["error"]["code"] == 413


def test_it_asks_for_its_key_where_it_has_one() -> None:
    with simulated_replica(key="secret-1") as url:
        for key in ("", "secret-2", "sécret"):
            assert send(url, "/models", method="GET", key=key).status == 401
        assert ask(url, key="wrong").json["error"]["code"] == 401
        assert ask(url, tokens=1, key="secret-1").status == 200
        assert send(url.removesuffix("/v1"), "/health", method="GET").status == 200
