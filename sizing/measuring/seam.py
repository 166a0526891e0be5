"""The seam between the search and whatever makes load: one level in, what was observed out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sizing.domain.levels import Level, Slo

LOOPBACK = ("127.0.0.0/8", "::1/128")


class MeasuringError(Exception):
    """A measurement that cannot be taken, with the reason in one line."""


class Stopped(Exception):  # noqa: N818  it reads as what it says
    """The level was stopped because its watcher asked for it."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A replica's OpenAI-compatible API.

    url: its base, such as `http://10.0.0.7:8000/v1`. model: the name it serves. networks: the only
    networks that may be connected to. key: its API key; never shown, stored or given as an argument.
    """

    url: str
    model: str
    networks: tuple[str, ...] = LOOPBACK
    key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Workload:
    """The shape of each request, and the seed of its unique prompts and of the arrivals.

    words_per_token: how many of the generator's words make a token of the model, as the probe found.
    extras: further keys of the request's body that this server takes (`ignore_eos`, ...).
    """

    input_tokens: int
    output_tokens: int
    seed: int = 0
    words_per_token: float = 1.0
    extras: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Load:
    """Streams (`concurrency`) or requests/s (`poisson`)."""

    arrival: str
    value: float


@dataclass(frozen=True, slots=True)
class Limits:
    """When a level ends.

    It runs until its verdict is resolved (`thorough`), or until 10 requests went by without a violation,
    for at least `least_s` after its warm-up (neighboring requests share their fate, so that many in a short
    time prove little), and never beyond `seconds`, `requests` or `bytes` received. `request_s` is the
    deadline of one request, `warmup_s` is left out at the start.
    """

    slo: Slo
    thorough: bool = False
    warmup_s: float = 1.0
    least_s: float = 2.0
    seconds: float = 60.0
    requests: int = 5_000
    bytes: int = 512 * 1024 * 1024
    request_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a level is: seconds since its start, requests so far, tokens/s so far."""

    seconds: float = 0.0
    sent: int = 0
    completed: int = 0
    failed: int = 0
    tok_per_sec: float = 0.0


@dataclass(frozen=True, slots=True)
class Probe:
    """What one request alone told: times in ms, tokens of prompt and answer, what the server takes."""

    ttft_ms: float | None
    e2e_ms: float
    prompt_tokens: int | None
    output_tokens: int
    words_per_token: float
    extras: Mapping[str, Any] = field(default_factory=dict)


Watch = Callable[[Progress], bool]
"""Called at least twice a second while a level runs; False: stop it."""


class Maker(Protocol):
    """A maker of load."""

    @property
    def name(self) -> str:
        """Its name and version, as kept beside the measurement."""

    def run_level(
        self, endpoint: Endpoint, workload: Workload, load: Load, limits: Limits, watch: Watch
    ) -> Level:
        """Run one level; Stopped where the watcher ended it, MeasuringError where it cannot run."""
