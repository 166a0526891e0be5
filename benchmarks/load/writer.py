"""The writer: a change a second through REST, and after each a look whether all processes answer by it."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from itertools import cycle
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.pages import WISHES
from benchmarks.target_http import MODEL, URGENT

EVERY_S = 1.0
LOOKS = 4
"""Connections of the looks, each of which may lead to another web process."""

ORDER = ("replica", "replica", "node", "replica", "measurement", "replica", "replica", "node", "model")
"""What comes and goes is mostly replicas."""


class Writer(threading.Thread):
    """Changes replicas, nodes, measurements and models in turn.

    replicas: by model, those that are ready and run one GPU. free: by node, the GPUs that nobody holds.
    """

    def __init__(
        self,
        port: int,
        token: str,
        stop: threading.Event,
        replicas: dict[str, list[str]],
        free: dict[str, int],
    ) -> None:
        super().__init__(daemon=True)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._writing = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._looking = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for _ in range(LOOKS)]
        self._stopped = stop
        self._replicas, self._free = replicas, free
        self._took: dict[str, list[float]] = {}
        self._failures: list[str] = []
        self._looks = self._old = 0

    def run(self) -> None:
        changes: dict[str, Iterator[Callable[[], None]]] = {
            "replica": self._of_replicas(),
            "node": self._of_nodes(),
            "measurement": self._of_measurements(),
            "model": self._of_models(),
        }
        for what in cycle(ORDER):
            if self._stopped.wait(EVERY_S):
                return
            try:
                next(changes[what])()
            except (OSError, http.client.HTTPException) as error:
                self._failures.append(f"{what}: {error!r}")
                for connection in (self._writing, *self._looking):
                    connection.close()

    def show(self) -> bool:
        """Print what was written and what the looks saw; whether all went well."""
        for what, times in self._took.items():
            took = f"p50 {median(times):>6.1f} ms, max {max(times):>6.0f} ms"
            print(f"written: {len(times):>4} x {what:<12} {took}")
        for words in self._failures[:10]:
            print(f"  failed: {words}")
        print(f"{self._looks:,} looks right after a write, {self._old} older than the write")
        return not self._failures and not self._old

    # Each yields steps: a change, and what answers must say from then on

    def _of_replicas(self) -> Iterator[Callable[[], None]]:
        models = [name for name in sorted(self._replicas)[:WISHES] if len(self._replicas[name]) > 1]
        for model in cycle(models):
            name = self._replicas[model][0]
            current = self._answer(self._looking[0], model)["current"]
            for state, expected in (("failed", current - 1), ("ready", current)):
                yield lambda name=name, state=state, model=model, expected=expected: self._change(  # type: ignore[misc]
                    "replica", "PATCH", f"replicas/{name}", {"state": state}, model, "current", expected
                )

    def _of_nodes(self) -> Iterator[Callable[[], None]]:
        nodes = sorted(name for name, free in self._free.items() if free)
        room = self._answer(self._looking[0], URGENT)["free_room"]
        for node in cycle(nodes):
            for on, expected in ((False, room - self._free[node]), (True, room)):
                yield lambda node=node, on=on, expected=expected: self._change(  # type: ignore[misc]
                    "node", "PATCH", f"nodes/{node}", {"schedulable": on}, URGENT, "free_room", expected
                )

    def _of_measurements(self) -> Iterator[Callable[[], None]]:
        number = 0
        while True:
            number += 1
            model, rate = f"model-{number % WISHES:03}", 10 + number / 100
            body = {"model": model, "variant": "g1", "profile": "chat", "tok_per_sec": rate, "source": "load"}
            yield lambda body=body: self._change(  # type: ignore[misc]
                "measurement", "POST", "measurements", body, body["model"], "per_replica_tok_per_sec",
                body["tok_per_sec"],
            )  # fmt: skip

    def _of_models(self) -> Iterator[Callable[[], None]]:
        for most in cycle(range(5, 50)):
            yield lambda most=most: self._change(  # type: ignore[misc]
                "model", "PATCH", f"models/{MODEL}", {"max_replicas": most}, MODEL, "free_room", most
            )

    def _change(
        self, what: str, method: str, path: str, body: dict[str, Any], model: str, key: str, expected: float
    ) -> None:
        begin = perf_counter()
        status, _ = self._call(self._writing, method, f"/api/v1/{path}", body)
        self._took.setdefault(what, []).append((perf_counter() - begin) * 1000)
        if status not in (200, 201):
            self._failures.append(f"{method} {path}: status {status}")
            return
        for connection in self._looking:
            self._looks += 1
            if (found := self._answer(connection, model).get(key)) != expected:
                self._old += 1
                self._failures.append(f"after {method} {path}: {key} of {model} is {found}, not {expected}")

    def _answer(self, connection: http.client.HTTPConnection, model: str) -> dict[str, Any]:
        path = f"/api/v1/models/{model}/target?tokens_per_sec=1&variant=g1"
        return self._call(connection, "GET", path, None)[1]

    def _call(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: object
    ) -> tuple[int, dict[str, Any]]:
        connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        answer = connection.getresponse()
        found: dict[str, Any] = json.loads(answer.read())
        return answer.status, found
