"""Replicas fail, from the start or while they are measured: the refresh says why, and nothing is stored."""

from __future__ import annotations

import re
from contextlib import ExitStack
from functools import partial
from urllib.parse import urlsplit

import pytest

from tests.faults.rows import fresh, nothing_runs, queued, untouched, wait_for, wait_until_measured_at
from tests.infra.desk import Desk
from tests.measuring.simulated import simulated_replica

pytestmark = pytest.mark.database

slow_replica = partial(simulated_replica, t0=20, a=0.1, p=0.001)

FROM_THE_START = {
    "die_after=1": "closes the connection without an answer",
    "hang": "did not end an answer within N s",
    "busy": "failed a lone request (http 429): the simulated engine is busy",
    "endless": "failed a lone request (answer too large)",
    "abort": "closes the connection in the middle of an answer",
    "html": "answers with a web page: is it the base of the API, such as http://10.0.0.7:8000/v1?",
}

LATER = {
    "die_after=40": "cannot be reached: Connection refused",
    "hang=40": "did not end an answer within N s",
    "busy": "failed a lone request (http 429): the simulated engine is busy",
    "endless": "failed a lone request (answer too large)",
    "abort": "closes the connection in the middle of an answer",
    "html": "answers with a web page: is it the base of the API, such as http://10.0.0.7:8000/v1?",
}


def plain(error: str, url: str) -> str:
    """A reason without what differs from run to run."""
    error = re.sub(r"within [\d.]+ s", "within N s", error.replace(f"{url} ", ""))
    return re.sub(r"\('127\.0\.0\.1', \d+\)", "(address)", error)


def test_a_replica_that_fails_from_the_start(desk: Desk) -> None:
    with ExitStack() as stack:
        urls = {fault: stack.enter_context(slow_replica(faults=[fault])) for fault in FROM_THE_START}
        rows = {fault: queued(url, budget_s=8) for fault, url in urls.items()}
        for row in rows.values():
            wait_for(row, "failed")
            untouched(row)
        assert {fault: plain(fresh(row).error, urls[fault]) for fault, row in rows.items()} == FROM_THE_START
        nothing_runs(desk, *(url for fault, url in urls.items() if fault != "die_after=1"))


def test_a_replica_that_fails_in_a_level(desk: Desk) -> None:
    """Some by themselves at their fortieth request, the others in that another takes their port."""
    with ExitStack() as stack:
        first = {fault: stack.enter_context(ExitStack()) for fault in LATER}
        urls = {
            fault: first[fault].enter_context(slow_replica(faults=[fault] if "=" in fault else []))
            for fault in LATER
        }
        rows = {
            fault: queued(url, lowest=1, highest=4, most_levels=12, budget_s=28)
            for fault, url in urls.items()
        }
        for fault, url in urls.items():
            wait_until_measured_at(rows[fault])
            if "=" not in fault:
                first[fault].close()
                port = urlsplit(url).port or 0
                stack.enter_context(slow_replica(faults=[fault], port=port))
        for row in rows.values():
            wait_for(row, "failed", "done")
        errors = {fault: fresh(row).error for fault, row in rows.items()}
        assert all(re.match(r"the replica went away at \d streams?: ", e) for e in errors.values()), errors
        after = {fault: error.rpartition("and then: ")[2] for fault, error in errors.items()}
        assert {fault: plain(error, urls[fault]) for fault, error in after.items()} == LATER
        for row in rows.values():
            untouched(row)
        nothing_runs(desk, *(url for fault, url in urls.items() if fault != "die_after=40"))
