"""The replica's own counters tell of foreign traffic, other token counts and cached prompts."""

from __future__ import annotations

import pytest

from sizing.domain.levels import Level
from sizing.measuring.engine import Counters, _parse
from sizing.measuring.traffic import busy, compare

VLLM = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 24.0
vllm:num_requests_running{engine="1",model_name="m"} 20.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 6.0
# TYPE vllm:generation_tokens counter
vllm:generation_tokens_total{engine="0",model_name="m"} 1000.0
vllm:generation_tokens_total{engine="1",model_name="m"} 500.0
# TYPE vllm:generation_tokens_created gauge
vllm:generation_tokens_created{engine="0",model_name="m"} 1.7e+09
# TYPE vllm:request_success counter
vllm:request_success_total{engine="0",finished_reason="stop"} 3.0
vllm:request_success_total{engine="0",finished_reason="length"} 4.0
# TYPE vllm:prefix_cache_queries counter
vllm:prefix_cache_queries_total{engine="0"} 200.0
# TYPE vllm:prefix_cache_hits counter
vllm:prefix_cache_hits_total{engine="0"} 20.0
"""


def test_vllm_counters_are_summed_over_engines_and_created_ones_left_out() -> None:
    assert _parse(VLLM) == Counters(1500, 7, 44, 6, 20, 200, "vLLM")


def test_tgi_counters_are_read() -> None:
    text = (
        "# TYPE tgi_request_success counter\ntgi_request_success 1190\n"
        "# TYPE tgi_queue_size gauge\ntgi_queue_size 5\n"
        "# TYPE tgi_request_generated_tokens histogram\n"
        'tgi_request_generated_tokens_bucket{le="+Inf"} 1190\n'
        "tgi_request_generated_tokens_count 1190\ntgi_request_generated_tokens_sum 238000\n"
    )
    found = _parse(text)
    assert (found.generated, found.waiting, found.requests, found.engine) == (238000, 5, 1190, "TGI")


@pytest.mark.parametrize("text", ["", "<html>no metrics</html>", "vllm:x{ 1"])
def test_what_is_no_metrics_text_tells_nothing(text: str) -> None:
    assert _parse(text) == Counters()


def test_a_replica_that_serves_others_at_the_start_is_noted() -> None:
    assert busy(Counters(running=2, waiting=1)) == (
        "the replica was serving 3 other requests when the level began"
    )
    assert busy(Counters(running=0, waiting=0)) == ""
    assert busy(None) == ""


def level(tokens: float) -> Level:
    return Level(all_tokens=tokens)


def test_a_token_count_within_three_percent_agrees() -> None:
    assert compare(Counters(generated=100), Counters(generated=1130), level(1000)) == ()
    assert compare(Counters(generated=100), Counters(generated=1131), level(1000)) == (
        "the replica counts 1,031 tokens made, 1,000 came: others use it, or tokens were lost on the way",
    )
    assert compare(Counters(generated=100), Counters(generated=1069), level(1000)) == (
        "the replica counts 969 tokens made, 1,000 came: its own count is lower",
    )


def test_a_counter_that_began_anew_tells_nothing() -> None:
    assert compare(Counters(generated=5000), Counters(generated=10), level(1000)) == ()
    assert compare(None, Counters(generated=10), level(1000)) == ()


def test_prompts_from_the_cache_are_noted() -> None:
    before = Counters(cache_hits=100, cache_queries=1000)
    assert compare(before, Counters(cache_hits=150, cache_queries=2000), level(0)) == ()
    assert compare(before, Counters(cache_hits=600, cache_queries=2000), level(0)) == (
        "50 % of the prompts came from the prefix cache: real traffic may be slower",
    )
