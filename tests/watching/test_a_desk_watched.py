"""A desk with two web processes: scraped by a real Prometheus, its log read by a machine."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

import pytest
from django.conf import settings
from pytest_django import DjangoDbBlocker

from sizing.services.tokens import create_token
from tests.faults.rows import rows_of
from tests.infra.desk import Desk, environment_of, until
from tests.services.servers import free_port

pytestmark = pytest.mark.database

CONFIGURED = settings.BASE_DIR / "deploy/prometheus"
MODEL = "simulated/tiny-8b"


class Watched:
    """A demo desk and a token to look at it with."""

    def __init__(self, desk: Desk, token: str) -> None:
        self.desk = desk
        self.token = token
        self.host = urlsplit(desk.address).netloc

    def ask(self, method: str, path: str, **headers: str) -> tuple[int, str]:
        """Over a connection of its own, so that any of the web processes may take it."""
        with closing(http.client.HTTPConnection(self.host, timeout=30)) as connection:
            allowed = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            connection.request(
                method, path, body="{}" if method == "POST" else None, headers=allowed | headers
            )
            answer = connection.getresponse()
            return answer.status, answer.read().decode()


@pytest.fixture(scope="module")
def watched(
    tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker
) -> Iterator[Watched]:
    with environment_of(tmp_path_factory.mktemp("desk")) as environment:
        desk = Desk(environment | {"WEB_WORKERS": "2", "LOG_FORMAT": "json"}, "--demo")
        try:
            with django_db_blocker.unblock(), rows_of(environment):
                yield Watched(desk, create_token("admin", "prometheus"))
        finally:
            desk.stop(signal.SIGTERM)


@pytest.fixture
def prometheus(watched: Watched, tmp_path: Path) -> Iterator[str]:
    """The address of a Prometheus with the configuration that comes with the desk, but in a hurry."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("there is no Prometheus on this machine (Debian: apt-get install prometheus)")
    token = tmp_path / "token"
    token.write_text(watched.token)
    configuration = (CONFIGURED / "prometheus.yml").read_text(encoding="utf-8")
    for given, tried in (
        ("/etc/prometheus/llmgw-admin.token", str(token)),
        ("desk.example.com", watched.host),
        ("scheme: https", "scheme: http"),
        ("interval: 30s", "interval: 1s"),
    ):
        assert given in configuration
        configuration = configuration.replace(given, tried)
    (tmp_path / "prometheus.yml").write_text(configuration)
    rules = (CONFIGURED / "alerts.yml").read_text(encoding="utf-8")
    (tmp_path / "alerts.yml").write_text(re.sub(r"for: \w+", "for: 0s", rules))
    address = f"127.0.0.1:{free_port()}"
    options = f"--config.file=prometheus.yml --storage.tsdb.path=data --web.listen-address={address}"
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([program, *options.split()], cwd=tmp_path, stdout=log, stderr=log)
        yield f"http://{address}"
        process.terminate()
        process.wait(20)


def results(address: str, path: str, **parameters: str) -> Any:
    try:
        with urlopen(f"{address}/api/v1/{path}?{urlencode(parameters)}", timeout=10) as answer:
            return json.load(answer)["data"]
    except OSError:  # it is not up yet
        return {}


def test_prometheus_scrapes_it_and_an_alert_fires(watched: Watched, prometheus: str) -> None:
    def firing() -> set[tuple[str, str]]:
        found = results(prometheus, "alerts").get("alerts", ())
        return {
            (alert["labels"]["alertname"], alert["labels"].get("model", ""))
            for alert in found
            if alert["state"] == "firing"
        }

    assert until(lambda: ("TargetDoesNotFit", "google/gemma-2-27b-it") in firing()), firing()
    assert not {"DeskDown", "NoWorker", "BrokerAway"} & {name for name, _ in firing()}
    found = results(prometheus, "query", query="llmgw_nodes")["result"]
    assert [(one["metric"]["job"], one["value"][1]) for one in found] == [("llmgw-admin", "27")]


def test_any_web_process_tells_what_all_have_answered(watched: Watched) -> None:
    def told() -> float:
        line = r'^llmgw_http_requests_total\{method="GET",route="node-list",status="200"\} (\S+)$'
        found = re.search(line, watched.ask("GET", "/metrics")[1], re.MULTILINE)
        return float(found[1]) if found else 0.0

    asked = 0

    def both_answered() -> bool:
        nonlocal asked
        assert watched.ask("GET", "/api/v1/nodes")[0] == 200
        asked += 1
        return len(list(Path(watched.desk.environment["DATA_DIR"]).glob("metrics/*/*.json"))) == 2

    assert until(both_answered)
    # Whoever answers knows of the others' what is older than a second; nothing is ever counted twice.
    assert until(lambda: {told() for _ in range(8)} == {float(asked)})


def test_the_id_of_a_request_is_found_in_the_lines_of_the_worker_that_works_for_it(watched: Watched) -> None:
    status, row = watched.ask("POST", f"/api/v1/models/{MODEL}/refresh", **{"X-Request-Id": "from-outside"})
    assert status == 202
    begun = json.loads(watched.desk.wait_for(r"refresh \d+ begins").string)
    of_refresh = {"request_id": "from-outside", "refresh": json.loads(row)["id"]}
    assert begun["task"] == "sizing.tasks.run_refresh"
    assert {name: begun[name] for name in of_refresh} == of_refresh
    watched.ask("POST", f"/api/v1/refreshes/{of_refresh['refresh']}/cancel")
    ended = json.loads(watched.desk.wait_for(r"refresh \d+ is cancelled").string)
    assert {name: ended[name] for name in of_refresh} == of_refresh


def test_every_line_of_the_log_is_json(watched: Watched) -> None:
    watched.ask("GET", "/api/v1/nodes/%0A%1B[2J%E2%80%A8forged?secret=1")
    asked = json.loads(watched.desk.wait_for(r"forged").string)
    assert (asked["path"], asked["status"]) == ("/api/v1/nodes/\n\x1b[2J\u2028forged", 404)
    time.sleep(0.2)
    # What `up` and the demo's replicas say is no record of the log.
    records = [line for line in watched.desk.lines if line.startswith("{")]
    assert {"time", "level", "logger", "message"} <= set.intersection(*(set(json.loads(x)) for x in records))
    assert not any(re.match(r"\d{4}-\d\d-\d\dT\S+ [A-Z]+ ", line) for line in watched.desk.lines)
    assert not any("secret" in line for line in watched.desk.lines)
