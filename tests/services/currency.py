"""Answers beside writes: whether any is older than the last write that was committed before its question.

Two models each have one measurement, whose figure only grows: a writer raises the first by the API of one
host, another one raises the second in the database itself. Readers on all hosts look at both.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import psycopg

from tests import builders

FIRST = 1_000
MILLIONTHS = 1_000_000
"""Of one, as the table keeps figures."""

RAISE_EACH_S = 0.02


@dataclass
class Figure:
    """A measurement that is being raised. `committed`: the figure of the last write that came back."""

    model: str
    model_id: int
    measurement: int
    committed: int = FIRST

    @property
    def looks(self) -> dict[str, Callable[[str], int]]:
        """Paths that show the figure, and how to read it there."""
        return {
            f"/api/v1/models/{self.model}/target?tokens_per_sec=1": _of_answer,
            f"/admin/sizing/servedmodel/{self.model_id}/target/?tokens_per_sec=1": _of_page,
            f"/api/v1/measurements/{self.measurement}": _of_measurement,
        }


def figures() -> tuple[Figure, Figure]:
    """Two new ones; needs the rows of the desk."""
    made = []
    for name in ("by-api", "in-database"):
        model, profile = builders.model(name), builders.profile(f"profile-{name}")
        measured = builders.measurement(builders.variant(model), profile, FIRST)
        made.append(Figure(name, model.pk, measured.pk))
    return made[0], made[1]


@dataclass
class Seen:
    """What came of it."""

    reads: dict[str, int] = field(default_factory=dict)  # by host
    values: set[int] = field(default_factory=set)  # of both figures
    writes: int = 0
    stale: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def watch(
    hosts: Sequence[str],
    headers: dict[str, str],
    database: str,
    by_api: Figure,
    in_database: Figure,
    *,
    readers: int = 8,
    seconds: float = 5.0,
) -> Seen:
    """Write and read for some seconds.

    hosts: addresses such as ``http://127.0.0.1:8000/``; the first is written to. headers: of somebody who may
    all, by a token and a session.
    """
    seen, lock = Seen(reads=dict.fromkeys(hosts, 0)), threading.Lock()
    until = time.monotonic() + seconds

    def carefully(work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  whatever it is, it is told
            seen.failed.append(repr(error))

    def write(raise_to: Callable[[int], None], figure: Figure) -> None:
        while time.monotonic() < until:
            raise_to(figure.committed + 1)
            figure.committed += 1
            with lock:
                seen.writes += 1
            time.sleep(RAISE_EACH_S)

    def by_api_of_the_first() -> None:
        ask = Asker(hosts[0], headers)
        path = f"/api/v1/measurements/{by_api.measurement}"
        write(lambda value: ask.patch(path, {"tok_per_sec": value}), by_api)

    def by_sql() -> None:
        with psycopg.connect(database, autocommit=True) as connection:
            statement = "UPDATE sizing_measurement SET tok_per_sec = %s WHERE id = %s"

            def raise_to(value: int) -> None:
                connection.execute(statement, [value * MILLIONTHS, in_database.measurement])

            write(raise_to, in_database)

    def read(number: int) -> None:
        host = hosts[number % len(hosts)]
        ask = Asker(host, headers)
        looks = [(figure, *look) for figure in (by_api, in_database) for look in figure.looks.items()]
        turn = number
        while time.monotonic() < until:
            figure, path, value_in = looks[turn % len(looks)]
            turn += 1
            before = figure.committed
            value = value_in(ask.get(path))
            with lock:
                seen.reads[host] += 1
                seen.values.add(value)
                if value < before:
                    seen.stale.append(f"{path} of {host} said {value} when {before} was committed")

    works = [by_api_of_the_first, by_sql, *(lambda n=n: read(n) for n in range(readers))]
    threads = [threading.Thread(target=carefully, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen


class Asker:
    """One caller with a connection of its own."""

    def __init__(self, address: str, headers: dict[str, str]) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
        self._headers = headers

    def get(self, path: str) -> str:
        return self._ask("GET", path, None)

    def patch(self, path: str, document: dict[str, object]) -> None:
        self._ask("PATCH", path, json.dumps(document))

    def _ask(self, method: str, path: str, body: str | None) -> str:
        self._connection.request(method, path, body, self._headers | {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        text = answer.read().decode()
        if answer.status != 200:
            raise AssertionError(f"{method} {path}: {answer.status} {text[:300]}")
        return text


def _of_answer(body: str) -> int:
    return int(json.loads(body)["per_replica_tok_per_sec"])


def _of_measurement(body: str) -> int:
    return int(float(json.loads(body)["tok_per_sec"]))


def _of_page(body: str) -> int:
    found = re.search(r"<dt>tok/s a replica</dt><dd>([\d,]+)", body)
    if not found:
        raise AssertionError(f"no figure on the page: {body[-2000:]}")
    return int(found[1].replace(",", ""))
