"""Readers: each asks one thing after another, of mixed kinds and models, and notes how long it took."""

from __future__ import annotations

import http.client
import random
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter

from benchmarks.pages import TOK_PER_SEC, WISHES
from benchmarks.target_http import MODEL, URGENT, Server

EMPTY = "empty authenticated view"
BOARD = "board"

IDS = """
from sizing.models import ServedModel
print(*ServedModel.objects.filter(name__in={names!r}).values_list("pk", flat=True))
"""


@dataclass(frozen=True)
class Kind:
    """What is asked for; `weight`: how often, beside the others."""

    name: str
    weight: int
    path: Callable[[random.Random], str]


def kinds_of(server: Server, free: int) -> list[Kind]:
    """The questions of the mix; *free* GPUs are left in the fleet."""
    models = [f"model-{number:03}" for number in range(WISHES)]
    ids = server.manage("shell", "-v0", "-c", IDS.format(names=models)).split()

    def target(model: str, rate: int, rest: str = "") -> str:
        return f"/api/v1/models/{model}/target?tokens_per_sec={rate}{rest}"

    def some(chance: random.Random, most: int) -> int:
        return chance.randrange(1, most) * TOK_PER_SEC

    def page(chance: random.Random) -> str:
        return f"/admin/sizing/servedmodel/{chance.choice(ids)}/target/?tokens_per_sec={some(chance, 200)}"

    return [
        Kind(EMPTY, 20, lambda chance: "/empty"),
        Kind("target that fits", 20, lambda c: target(c.choice(models), some(c, 200))),
        Kind("target that is blocked", 10, lambda c: target(MODEL, 10_000 + some(c, 20), "&variant=g8")),
        Kind("target that stops others", 5, lambda c: target(URGENT, (free + c.choice((10, 100))) * 10)),
        Kind("target, every node explained", 2, lambda c: target(MODEL, 10_000, "&explain=nodes")),
        Kind("target page", 8, page),
        Kind(BOARD, 8, lambda chance: "/admin/"),
        Kind("board kept current", 8, lambda chance: "/admin/board/live/"),
        Kind("list of replicas", 8, lambda c: f"/api/v1/replicas?model={c.choice(models)}"),
        Kind("list of nodes", 6, lambda c: f"/api/v1/nodes?page={c.randrange(1, 50)}"),
        Kind("metrics", 5, lambda chance: "/metrics"),
    ]


class Reader(threading.Thread):
    """One caller with a connection of its own; what fails is kept in words."""

    def __init__(
        self,
        port: int,
        headers: dict[str, str],
        kinds: Sequence[Kind],
        pause: float,
        seed: int,
        stop: threading.Event,
    ) -> None:
        super().__init__(daemon=True)
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers, self._kinds, self._stopped = headers, kinds, stop
        self._pause = pause
        self._chance = random.Random(seed)
        self.took: dict[str, list[float]] = {}
        self.failures: list[str] = []
        self.begin()

    @property
    def calls(self) -> int:
        """How many were answered since the beginning."""
        return sum(map(len, self.took.values()))

    def begin(self) -> None:
        """Forget what was noted so far."""
        self.took = {kind.name: [] for kind in self._kinds}

    def run(self) -> None:
        weights = [kind.weight for kind in self._kinds]
        while not self._stopped.wait(self._pause * self._chance.uniform(0.5, 1.5)):
            (kind,) = self._chance.choices(self._kinds, weights)
            path = kind.path(self._chance)
            begin = perf_counter()
            try:
                self._connection.request("GET", path, headers=self._headers)
                answer = self._connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(f"{path}: {error!r}")
                self._connection.close()
                continue
            self.took[kind.name].append((perf_counter() - begin) * 1000)
            if answer.status != 200:
                self.failures.append(f"{path}: status {answer.status}")


@dataclass(frozen=True)
class Timings:
    """What all readers noted, in milliseconds by kind."""

    took: dict[str, list[float]]
    failures: list[str]
    seconds: float

    @classmethod
    def of(cls, readers: Iterable[Reader], seconds: float) -> Timings:
        took: dict[str, list[float]] = {}
        failures: list[str] = []
        for reader in readers:
            failures += reader.failures
            for name, times in reader.took.items():
                took.setdefault(name, []).extend(times)
        return cls({name: sorted(times) for name, times in took.items() if times}, failures, seconds)

    def show(self, most: float) -> bool:
        """Print a line for each kind; whether nothing failed and no p99 is above *most* times its p50."""
        calls = sum(map(len, self.took.values()))
        print(f"{calls:,} calls in {self.seconds:.0f} s, {len(self.failures)} failed")
        for words in self.failures[:10]:
            print(f"  failed: {words}")
        empty = _quantile(self.took[EMPTY], 0.5)
        print(f"{'kind':<32}{'calls':>8}{'p50 ms':>9}{'x empty':>9}{'p99 ms':>9}{'p99/p50':>9}{'max ms':>9}")
        fine = not self.failures
        for name, times in self.took.items():
            middle, high = _quantile(times, 0.5), _quantile(times, 0.99)
            fine &= high <= most * middle
            print(
                f"{name:<32}{len(times):>8,}{middle:>9.1f}{middle / empty:>9.1f}"
                f"{high:>9.1f}{high / middle:>9.1f}{times[-1]:>9.0f}"
            )
        return fine


def _quantile(times: Sequence[float], share: float) -> float:
    return times[min(int(len(times) * share), len(times) - 1)]
