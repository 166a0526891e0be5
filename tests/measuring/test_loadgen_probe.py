"""The lone requests before a measurement: what they find, and what they refuse in one line."""

from __future__ import annotations

import json

import pytest

from sizing.measuring.loadgen.builtin import probe
from sizing.measuring.seam import Endpoint, MeasuringError, Probe, Workload
from tests.measuring.raw_server import STREAM, raw_server
from tests.measuring.simulated import simulated_replica
from tests.measuring.test_loadgen_stream import chunk, usage

WORKLOAD = Workload(input_tokens=64, output_tokens=16)
DONE = b"data: [DONE]\n\n"


def ask(url: str, workload: Workload = WORKLOAD, deadline_s: float = 10.0, key: str = "") -> Probe:
    return probe(Endpoint(url, "simulated", key=key), workload, deadline_s, lambda _: True)


def refused(url: str, deadline_s: float = 10.0, key: str = "") -> str:
    with pytest.raises(MeasuringError) as error:
        ask(url, deadline_s=deadline_s, key=key)
    assert "\n" not in str(error.value)
    return str(error.value).replace(url, "URL")


def error(status: int, message: str) -> bytes:
    body = json.dumps({"error": {"message": message}})
    head = f"HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()


def test_a_replica_alone_is_timed_and_counted() -> None:
    with simulated_replica(t0=50, a=1, p=5) as url:
        found = ask(url)
    assert found.ttft_ms == pytest.approx(51 + 64 * 5, rel=0.03, abs=25)
    assert found.e2e_ms == pytest.approx(51 * 16 + 64 * 5, rel=0.03)
    assert (found.prompt_tokens, found.output_tokens, found.words_per_token) == (64, 16, 1.0)
    assert found.extras == {"ignore_eos": True, "min_tokens": 16}


def test_words_per_token_make_prompts_as_long_as_asked_beside_a_chat_template() -> None:
    def reply(request: bytes) -> list[bytes]:
        words = len(json.loads(request.partition(b"\r\n\r\n")[2])["messages"][0]["content"].split())
        tokens = round(words * 1.5) + 300
        return [STREAM + chunk({"content": "a"}, "stop") + usage(prompt_tokens=tokens, completion_tokens=1)]

    with raw_server(reply) as url:
        found = ask(url, Workload(input_tokens=1_000, output_tokens=1))
    assert round(1_000 * found.words_per_token) == 467  # 467 x 1.5 + 300 = 1000.5


def test_keys_that_a_server_refuses_by_name_are_left_out() -> None:
    def reply(request: bytes) -> list[bytes]:
        body = json.loads(request.partition(b"\r\n\r\n")[2])
        for key in ("min_tokens", "stream_options"):
            if key in body:
                return [error(400, f"Unrecognized request argument: {key}")]
        return [STREAM + chunk({"content": "a"}) * 16 + chunk({}, "length") + DONE]

    with raw_server(reply) as url:
        assert ask(url).extras == {"ignore_eos": True, "stream_options": None}


def test_keys_are_left_out_where_a_server_does_not_say_which_it_refuses() -> None:
    def reply(request: bytes) -> list[bytes]:
        if b"ignore_eos" in request:
            return [error(422, "extra inputs are not permitted")]
        return [STREAM + chunk({"content": "a"}, "stop") + usage(prompt_tokens=64, completion_tokens=1)]

    with raw_server(reply) as url:
        assert ask(url).extras == {}


def test_an_answer_that_comes_all_at_once_has_no_ttft() -> None:
    whole = chunk({"content": "a b c"}, "stop") + usage(prompt_tokens=64, completion_tokens=16) + DONE
    with raw_server(lambda _: [STREAM, 0.2, whole]) as url:
        found = ask(url)
    assert (found.ttft_ms, found.output_tokens) == (None, 16)


def test_tokens_that_cannot_be_counted_are_refused() -> None:
    with simulated_replica(t0=5, faults=["no_usage", "chunk_tokens=4"]) as url:
        said = refused(url)
    assert said == "URL sends no usage, and 16 tokens in 5 chunks: its tokens cannot be counted"


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("errors", "URL failed a lone request (http 500): the simulated engine failed"),
        ("busy", "URL failed a lone request (http 429): the simulated engine is busy"),
        ("in_stream_error", "URL failed a lone request (error in the stream): the simulated engine failed"),
        ("abort", "URL closes the connection in the middle of an answer"),
        ("empty", "URL answers without a single token"),
        ("malformed", 'URL failed a lone request (malformed chunk): {"id": "broken", "choices": [{"index"'),
        ("html", "URL answers with a web page: is it the base of the API, such as http://10.0.0.7:8000/v1?"),
        ("no_stream", "URL does not stream: it answers in one piece"),
        ("endless", "URL failed a lone request (answer too large)"),
    ],
)
def test_a_replica_that_cannot_be_measured_is_refused_with_the_reason(fault: str, expected: str) -> None:
    with simulated_replica(t0=5, faults=[fault]) as url:
        assert refused(url) == expected


def test_a_redirect_is_refused_with_its_target() -> None:
    with simulated_replica(faults=["redirect=http://127.0.0.1:9/v1"]) as url:
        said = refused(url)
    assert said.endswith(" redirects (302) to http://127.0.0.1:9/v1; redirects are not followed")


def test_a_replica_that_hangs_is_refused_at_the_deadline() -> None:
    with simulated_replica(faults=["hang"]) as url:
        assert refused(url, deadline_s=1.0) == "URL did not end an answer within 1 s"


def test_an_endpoint_that_is_not_there_is_refused() -> None:
    assert refused("http://127.0.0.1:9/v1").startswith("URL cannot be reached: ")


def test_an_address_outside_the_networks_is_refused_by_its_name() -> None:
    said = refused("http://192.0.2.1/v1")
    assert said == "192.0.2.1 is outside the networks that may be measured: 127.0.0.0/8, ::1/128"


def test_an_unknown_model_is_named() -> None:
    with simulated_replica(model="other") as url:
        said = refused(url)
    assert said == (
        'URL answers 404: it has no model "simulated" or no chat completions: '
        "the model 'simulated' does not exist"
    )


def test_a_missing_and_a_wrong_key_are_told_apart_and_never_shown() -> None:
    with simulated_replica(t0=5, key="sk-right-key") as url:
        assert refused(url) == "URL needs a key; none is set (http 401)"
        assert refused(url, key="sk-wrong-key") == "URL does not accept the endpoint's key (http 401)"
        assert ask(url, key="sk-right-key").output_tokens == 16


def test_a_server_that_repeats_the_key_does_not_make_it_known() -> None:
    with raw_server(lambda _: [error(500, "key sk-secret-key has no quota")]) as url:
        assert (
            refused(url, key="sk-secret-key") == "URL failed a lone request (http 500): key *** has no quota"
        )


def test_what_does_not_speak_http_is_refused() -> None:
    with raw_server(lambda _: [b"SSH-2.0-OpenSSH_9.2\r\n"]) as url:
        assert refused(url).startswith("URL failed a lone request (not HTTP)")


def test_a_connection_closed_without_an_answer_is_refused() -> None:
    with raw_server(lambda _: []) as url:
        assert refused(url) == "URL closes the connection without an answer"
