"""What GuideLLM is told to do, and where it is sent."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from sizing.domain.levels import CONCURRENCY, POISSON, Slo
from sizing.measuring.guidellm.plan import level_seconds, most_requests, scenario
from sizing.measuring.guidellm.target import Target, checked_target
from sizing.measuring.seam import (
    Endpoint,
    Limits,
    Load,
    MeasuringError,
    Workload,
)

SLO = Slo(ttft_ms=500, itl_ms=50)
LIMITS = Limits(SLO)
WORKLOAD = Workload(64, 32, seed=5, extras={"ignore_eos": True})
ENDPOINT = Endpoint("http://127.0.0.1:9/v1", "reports", key="a secret")


def test_the_settings_of_an_open_loop_level():
    limits = Limits(Slo(ttft_ms=500, itl_ms=50, e2e_ms=3000), warmup_s=2, requests=900, request_s=40)
    target = Target("http://10.0.0.7:8000", "gpu-a1:8000", "v1")
    endpoint = Endpoint("http://gpu-a1:8000/v1", "llama", ("10.0.0.0/8",), "key")
    assert scenario(endpoint, target, WORKLOAD, Load(POISSON, 2.5), limits, 30) == {
        "backend": {
            "kind": "openai_http",
            "target": "http://10.0.0.7:8000",
            "model": "llama",
            "request_format": "/v1/chat/completions",
            "api_routes": {"/v1/chat/completions": "v1/chat/completions"},
            "api_key": "key",
            "extras": {"headers": {"Host": "gpu-a1:8000"}, "body": {"max_tokens": 32, "ignore_eos": True}},
            "timeout": 40,
            "http2": False,
            "verify": True,
            "follow_redirects": False,
            "validate_backend": False,
        },
        "data": [{"kind": "json_file", "path": "prompts.jsonl"}],
        "profile": {"kind": "poisson", "rate": [2.5], "warmup": {"value": 2, "mode": "duration"}},
        "constraints": [
            {"kind": "max_duration", "seconds": 30},
            {"kind": "max_requests", "count": 900},
            {"kind": "max_error_rate", "rate": 0.1},
        ],
        "seed": {"kind": "static", "value": 5},
        "metrics": {
            "kind": "generative",
            "sample_size": 0,
            "slo": {"ttft_ms": 500, "tpot_ms": 50, "e2el_ms": 3000},
            "warnings": [],
        },
        "outputs": [{"kind": "json", "path": "report.json"}],
    }


def test_the_settings_of_a_closed_loop_level():
    settings = scenario(ENDPOINT, checked_target(ENDPOINT), WORKLOAD, Load(CONCURRENCY, 8.0), LIMITS, 30)
    assert settings["profile"] == {
        "kind": "concurrent",
        "streams": [8],
        "warmup": {"value": 1.0, "mode": "duration"},
    }


@pytest.mark.parametrize(
    ("slo", "load", "thorough", "seconds"),
    [
        # A request that conforms takes at most 500 + 31 x 50 = 2,050 ms.
        (SLO, Load(CONCURRENCY, 1), False, 1 + 11 * 2.05),
        (SLO, Load(CONCURRENCY, 20), True, 1 + (73 / 20 + 1) * 2.05),
        (SLO, Load(CONCURRENCY, 20), False, 1 + 5),  # never shorter
        (SLO, Load(CONCURRENCY, 1), True, 60),  # never longer
        (SLO, Load(POISSON, 4), True, 1 + 1.3 * 73 / 4 + 2.05),
        (replace(SLO, e2e_ms=1000), Load(CONCURRENCY, 1), False, 1 + 11),
        (Slo(ttft_ms=500), Load(CONCURRENCY, 20), False, 60),
        (replace(SLO, percentile=100), Load(CONCURRENCY, 20), True, 60),
    ],
)
def test_a_level_lasts_as_long_as_the_requests_take_that_it_needs(slo, load, thorough, seconds):
    limits = Limits(slo, thorough=thorough)
    assert level_seconds(WORKLOAD, load, limits) == pytest.approx(seconds)


def test_there_is_a_prompt_for_each_request():
    assert most_requests(WORKLOAD, Load(CONCURRENCY, 8), LIMITS, 16) == 8 * (1 + 250) + 1
    assert most_requests(WORKLOAD, Load(POISSON, 4), LIMITS, 16) == 10 + 128 + 1
    assert most_requests(WORKLOAD, Load(CONCURRENCY, 800), LIMITS, 16) == LIMITS.requests


def test_a_name_is_connected_to_by_the_address_that_was_checked():
    target = checked_target(replace(ENDPOINT, url="http://localhost:8000/some/v1/"))
    assert target == Target("http://127.0.0.1:8000", "localhost:8000", "some/v1")


def resolve_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: found)


def test_an_address_outside_the_networks_is_refused(monkeypatch):
    resolve_to(monkeypatch, "192.0.2.1")
    with pytest.raises(MeasuringError) as refused:
        checked_target(Endpoint("http://gpu-a1:8000/v1", "llama", ("10.0.0.0/8",)))
    said = "gpu-a1 (192.0.2.1) is outside the networks that may be measured: 10.0.0.0/8"
    assert str(refused.value) == said


def test_over_http_one_allowed_address_is_enough(monkeypatch):
    resolve_to(monkeypatch, "10.0.0.7", "192.0.2.1")
    endpoint = Endpoint("http://gpu-a1/v1", "llama", ("10.0.0.0/8",))
    assert checked_target(endpoint) == Target("http://10.0.0.7:80", "gpu-a1", "v1")


def test_ipv4_comes_first(monkeypatch):
    resolve_to(monkeypatch, "::1", "127.0.0.1")
    assert checked_target(ENDPOINT).server == "http://127.0.0.1:9"
    resolve_to(monkeypatch, "::1")
    assert checked_target(ENDPOINT).server == "http://[::1]:9"


def test_over_https_every_address_has_to_be_allowed(monkeypatch):
    endpoint = Endpoint("https://gpu-a1/v1", "llama", ("10.0.0.0/8",))
    resolve_to(monkeypatch, "10.0.0.7", "192.0.2.1")
    with pytest.raises(MeasuringError, match=r"^gpu-a1 \(192\.0\.2\.1\) is outside the networks"):
        checked_target(endpoint)
    resolve_to(monkeypatch, "10.0.0.7")
    assert checked_target(endpoint) == Target("https://gpu-a1", "gpu-a1", "v1")


def test_a_name_without_an_address_is_refused(monkeypatch):
    def fail(*args: object, **kwargs: object) -> None:
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(MeasuringError, match=r"^gpu-a9 has no address$"):
        checked_target(Endpoint("http://gpu-a9/v1", "llama"))
