"""The simulated replica goes wrong as it was asked to, and as a plain client sees it."""

from __future__ import annotations

import http.client
import json
import socket
import time
from urllib.parse import urlsplit

import pytest

from tests.measuring.plain_client import GOOD, ask, send, stream, usage, wait_until
from tests.measuring.simulated import metric, simulated_replica, truth


def test_errors_are_an_exact_share_of_requests() -> None:
    with simulated_replica(t0=1, faults=["errors=0.4"]) as url:
        assert [ask(url, tokens=1).status for _ in range(10)] == [200, 200, 500, 200, 500] * 2
        assert truth(url)["totals"]["failed"] == 4


def test_an_error_within_the_stream_ends_it() -> None:
    with simulated_replica(t0=1, faults=["in_stream_error=0.5"]) as url:
        good, bad = stream(url, tokens=8), stream(url, tokens=8)
        assert len(good.token_times) == 8
        assert len(bad.token_times) == 4
        assert bad.chunks[-1]["error"]["code"] == 500
        assert bad.events[-1] == "[DONE]"
        assert [each["outcome"] for each in truth(url)["requests"]] == ["done", "failed"]
        wait_until(lambda: truth(url)["running"] == 0)


def test_an_abort_closes_the_connection_within_the_stream() -> None:
    with simulated_replica(t0=1, faults=["abort"]) as url:
        heard = stream(url, tokens=8)
        assert (heard.cut, len(heard.token_times)) == (True, 4)
        assert [each["outcome"] for each in truth(url)["requests"]] == ["cut"]


def test_an_empty_answer_has_no_token() -> None:
    with simulated_replica(faults=["empty"]) as url:
        heard = stream(url)
        assert (heard.status, heard.token_times, heard.events[-1]) == (200, [], "[DONE]")
        assert heard.chunks[-1]["usage"] == usage(4, 0)
        assert ask(url).json["choices"][0]["message"]["content"] == ""


def test_without_usage_none_is_told() -> None:
    with simulated_replica(t0=1, faults=["no_usage"]) as url:
        assert "usage" not in stream(url).text
        assert "usage" not in ask(url).text


def test_a_chunk_can_hold_several_tokens() -> None:
    with simulated_replica(t0=1, faults=["chunk_tokens=4"]) as url:
        heard = stream(url, tokens=11)
        texts = [delta["content"].split() for delta in heard.deltas[1:-1]]
        assert [len(words) for words in texts] == [1, 4, 4, 2]
        assert heard.chunks[-1]["usage"] == usage(4, 11)


@pytest.mark.parametrize(
    ("fault", "key"), [("reasoning", "reasoning_content"), ("reasoning=reasoning", "reasoning")]
)
def test_the_first_half_of_the_tokens_can_be_reasoning(fault: str, key: str) -> None:
    with simulated_replica(t0=1, faults=[fault, "chunk_tokens=3"]) as url:
        heard = stream(url, tokens=10)
        assert heard.deltas[1:-1] == [
            *({key: " token" * n} for n in (1, 3, 1)),
            *({"content": " token" * n} for n in (3, 2)),
        ]
        message = ask(url, tokens=10).json["choices"][0]["message"]
        assert (message[key], message["content"]) == (" token" * 5, " token" * 5)


def test_a_malformed_event_stands_within_a_stream_that_goes_on() -> None:
    with simulated_replica(t0=1, faults=["malformed"]) as url:
        heard = stream(url, tokens=6)
        broken = []
        for event in heard.events[:-1]:
            try:
                json.loads(event)
            except ValueError:
                broken.append(event)
        assert len(broken) == 1
        assert len(heard.token_times) == 6


def test_busy_answers_429_for_ever() -> None:
    with simulated_replica(faults=["busy"]) as url:
        heard = ask(url)
        assert (heard.status, heard.json["error"]["code"], heard.headers["Retry-After"]) == (429, 429, "1")


def test_html_answers_a_page_whatever_is_asked() -> None:
    with simulated_replica(faults=["html"]) as url:
        for heard in (ask(url), send(url, "/models", method="GET")):
            assert (heard.status, heard.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
            assert heard.text.startswith("<!doctype html>")


def test_redirect_sends_elsewhere() -> None:
    with simulated_replica(faults=["redirect=http://127.0.0.1:9/v1?a=b"]) as url:
        heard = ask(url)
        assert (heard.status, heard.headers["Location"]) == (302, "http://127.0.0.1:9/v1?a=b")


def test_hang_takes_requests_and_never_answers() -> None:
    with simulated_replica(t0=1, faults=["hang=2"]) as url:
        assert ask(url).status == 200
        place = urlsplit(url)
        with socket.create_connection((str(place.hostname), place.port or 0), timeout=0.5) as connection:
            body = json.dumps(GOOD | {"max_tokens": 1}).encode()
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            with pytest.raises(TimeoutError):
                connection.recv(1)
        assert send(url, "/models", method="GET").status == 200


def test_endless_streams_go_beyond_max_tokens() -> None:
    with simulated_replica(t0=1, faults=["endless"]) as url:
        place = urlsplit(url)
        connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=20)
        connection.request(
            "POST", "/v1/chat/completions", json.dumps(GOOD | {"max_tokens": 2, "stream": True})
        )
        response = connection.getresponse()
        lines = [response.readline() for _ in range(100)]
        assert sum(b'" token' in line for line in lines) > 40
        response.close()
        connection.close()


def test_one_piece_can_come_where_a_stream_was_asked_for() -> None:
    with simulated_replica(t0=1, faults=["no_stream"]) as url:
        heard = stream(url, tokens=3)
        assert heard.json["usage"] == usage(4, 3)
        assert heard.headers["Content-Type"].startswith("application/json")


def test_foreign_traffic_is_seen_in_the_metrics_alone() -> None:
    with simulated_replica(t0=1, a=0.1, faults=["foreign_traffic=20"]) as url:
        wait_until(lambda: metric(url, "vllm:request_success_total") >= 5)
        told = truth(url)
        assert told["requests"] == []
        assert told["totals"]["foreign_generation_tokens"] == told["totals"]["generation_tokens"] > 0
        assert told["totals"]["prompt_tokens"] % 64 == 0


def test_cached_prompts_count_as_hits_and_are_not_prefilled() -> None:
    with simulated_replica(t0=9, a=1, p=0.1, faults=["cached_prompts=0.8"]) as url:
        stream(url, words=100)
        assert metric(url, "vllm:prefix_cache_queries_total") == 100
        assert metric(url, "vllm:prefix_cache_hits_total") == 80
        assert truth(url)["requests"][0]["ttft_ms"] == pytest.approx(10 + 20 * 0.1)


def test_a_slow_start_makes_the_first_steps_longer() -> None:
    with simulated_replica(t0=19, a=1, p=0, faults=["slow_start=60"]) as url:
        stream(url, tokens=3)
        assert truth(url)["requests"][0]["tpot_ms"] == pytest.approx(60)
    with simulated_replica(t0=19, a=1, p=0, faults=["slow_start=0.001"]) as url:
        stream(url, tokens=3)
        assert truth(url)["requests"][0]["tpot_ms"] == pytest.approx(20)


def test_a_slow_version_comes_late() -> None:
    with simulated_replica(faults=["slow_version=0.5"]) as url:
        heard = send(url.removesuffix("/v1"), "/version", method="GET")
        assert time.monotonic() - heard.sent >= 0.5
        assert heard.json == {"version": "1.0-simulated"}


def test_it_dies_at_the_request_that_was_named() -> None:
    with simulated_replica(t0=1, faults=["die_after=3"]) as url:
        assert [ask(url).status for _ in range(2)] == [200, 200]
        for _ in range(2):
            with pytest.raises((http.client.HTTPException, OSError)):
                ask(url)
