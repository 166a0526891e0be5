"""Planted secrets: a whole desk is used and fails in many ways, and then none of them stands anywhere."""

from __future__ import annotations

import http.cookiejar
import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from tests.infra.desk import Desk, environment_of, until
from tests.measuring.raw_server import raw_server

AWAY = "127.0.0.1:1"  # nothing listens there
SECRETS = {
    name: f"canary-{name}-5f0e"
    for name in (
        *("secret-key", "endpoint-file", "endpoint-variable", "cache-password", "broker-password"),
        *("database-password", "cluster-token", "password", "wrong-password", "name-field", "in-endpoint"),
        *("wrong-token", "in-address"),
    )
}
PAGES = (
    *("/admin/", "/admin/history/", "/admin/login/", "/admin/sizing/refresh/", "/admin/sizing/replica/"),
    *("/admin/sizing/refresh/1/change/", "/admin/sizing/refresh/2/change/", "/admin/sizing/measurement/"),
    *("/admin/sizing/clustersync/", "/admin/sizing/clustersync/1/change/", "/admin/sizing/apitoken/"),
    *("/admin/auth/user/", "/admin/auth/user/1/change/", "/admin/sizing/inventoryload/", "/nope"),
    *("/api/v1/refreshes", "/api/v1/refreshes/1", "/api/v1/replicas", "/api/v1/inventory", "/api/v1/nope"),
    *("/api/v1/models/m/target?tokens_per_sec=10", "/api/v1/schema", "/api/v1/docs", "/api/v1/docs?script="),
    *("/healthz", "/healthz/live", "/healthz/ready", "/metrics"),
)


class Caller:
    """Somebody with a browser's cookies; keeps all that was answered."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        self.bodies: list[str] = []
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(cookies)

    def ask(self, path: str, data: bytes | None = None, **options: Any) -> str:
        request = urllib.request.Request(self.address + path, data, **options)
        try:
            answer = self._opener.open(request, timeout=30)
        except urllib.error.HTTPError as error:
            answer = error
        body: str = answer.read().decode()
        self.bodies.append(f"{answer.headers}\n{body}")
        return body

    def sign_in(self, name: str, password: str) -> str:
        page = self.ask("/admin/login/")
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
        assert token is not None
        form = {"username": name, "password": password, "csrfmiddlewaretoken": token[1]}
        return self.ask("/admin/login/?next=/admin/", urllib.parse.urlencode(form).encode())


def repeats_the_key(request: bytes) -> list[bytes]:
    """A replica that serves `m`, and whose errors repeat what it was sent."""
    if request.startswith(b"GET /v1/models"):
        status, body = b"200 OK", json.dumps({"data": [{"id": "m", "owned_by": "vllm"}]}).encode()
    else:
        status, body = b"400 Bad Request", json.dumps({"error": {"message": request.decode()}}).encode()
    return [b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (status, len(body), body)]


def inventory(*endpoints: str) -> bytes:
    """A model for each endpoint, with one replica that may be measured there."""
    gpus = [{"type": "H100", "memory_mib": 80000, "count": 8}]
    models = [
        {"name": f"m{i or ''}", "default_profile": "chat", "variants": [{"name": "v", "gpus": 1}]}
        for i, _ in enumerate(endpoints)
    ]
    replicas = [
        {
            "name": f"r{i}",
            "model": f"m{i or ''}",
            "variant": "v",
            "state": "ready",
            "benchable": True,
            "endpoint": endpoint,
            "placement": [{"node": f"n{i}", "gpus": [0]}],
        }
        for i, endpoint in enumerate(endpoints)
    ]
    profile = {"name": "chat", "input_tokens": 8, "output_tokens": 8, "slo": {"ttft_ms": 500}}
    nodes = [{"name": f"n{i}", "gpus": gpus} for i, _ in enumerate(endpoints)]
    whole = {"version": 1, "nodes": nodes, "profiles": [profile], "models": models, "replicas": replicas}
    return json.dumps(whole).encode()


@pytest.fixture
def planted(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a desk that has a secret in every place for one."""
    keys = tmp_path / "keys"
    keys.mkdir()
    (keys / "m").write_text(SECRETS["endpoint-file"])
    cluster = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://{AWAY}"}}],
        "users": [{"name": "u", "user": {"token": SECRETS["cluster-token"]}}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(cluster))
    with environment_of(tmp_path / "data") as values:
        yield values | {
            "SECRET_KEY": SECRETS["secret-key"] * 4,
            "ENDPOINT_KEYS_DIR": str(keys),
            "ENDPOINT_KEY_M1": SECRETS["endpoint-variable"],
            "CACHE_URL": f"redis://:{SECRETS['cache-password']}@{AWAY}/0",
            "KUBERNETES": "kubeconfig",
            "KUBECONFIG": str(tmp_path / "kubeconfig"),
        }


def run(environment: dict[str, str], *arguments: str) -> str:
    """What a command says."""
    command = [sys.executable, "manage.py", *arguments]
    done = subprocess.run(
        command,
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout + done.stderr


def states(caller: Caller, head: dict[str, str]) -> set[str]:
    listed = json.loads(caller.ask("/api/v1/refreshes", headers=head))
    return {one["state"] for one in listed["results"]}


@pytest.mark.database
def test_no_secret_stands_in_the_database_a_log_a_page_or_a_dump(
    planted: dict[str, str], tmp_path: Path
) -> None:
    told: list[str] = []
    broker = f"redis://:{SECRETS['broker-password']}@{AWAY}/0"
    database = f"postgresql://desk:{SECRETS['database-password']}@{AWAY}/desk"
    with raw_server(repeats_the_key) as one, raw_server(repeats_the_key) as other:
        desk = Desk(planted)
        try:
            named = planted | {"DJANGO_SUPERUSER_PASSWORD": SECRETS["password"]}
            new = ("createsuperuser", "--noinput", "--username", "ada", "--email", "")
            told.append(run(named, *new))
            token = run(planted, "create_token", "ada", "--label", "x").strip().splitlines()[-1]
            SECRETS["token"] = token
            caller = Caller(desk.address)
            head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            caller.ask("/api/v1/inventory", inventory(one, other), method="PUT", headers=head)
            for model in ("m", "m1"):
                caller.ask(f"/api/v1/models/{model}/refresh", b"{}", headers=head)
            assert until(lambda: states(caller, head) == {"failed"}, 60), states(caller, head)
            failures = caller.ask("/api/v1/refreshes", headers=head)
            assert "***" in failures, failures  # the replicas did repeat their keys
            # What people do wrong
            bad = inventory(f"http://u:{SECRETS['in-endpoint']}@10.0.0.1/v1")
            caller.ask("/api/v1/inventory", bad, method="PUT", headers=head)
            patch = json.dumps({"endpoint": f"http://10.0.0.1/?key={SECRETS['in-endpoint']}"}).encode()
            caller.ask("/api/v1/replicas/r0", patch, method="PATCH", headers=head)
            caller.ask("/api/v1/nodes", headers={"Authorization": f"Bearer {SECRETS['wrong-token']}"})
            caller.ask("/api/v1/nodes", headers={"Authorization": f"Basic {SECRETS['wrong-token']}"})
            caller.sign_in("ada", SECRETS["wrong-password"])
            caller.sign_in(SECRETS["name-field"], "x")
            caller.bodies.pop()  # the form says it again to who typed it
            assert "Log out" in caller.sign_in("ada", SECRETS["password"])
            for path in PAGES:
                caller.ask(path)
            tokens = caller.ask("/admin/sizing/apitoken/")
            assert re.search(r'class="field-used[^>]*>2\d{3}-', tokens), (
                "when a token was used is not written"
            )
            told += caller.bodies
            for command in (("dump_inventory",), ("backup", str(tmp_path / "backup"))):
                told.append(run(planted, *command))
            told.append(run(planted | {"DATABASE_URL": database}, "target", "m", "10"))
            told.append(run(planted | {"DATABASE_URL": f"{database}:x@y:z"}, "check"))
        finally:
            desk.stop(signal.SIGTERM)
        told += desk.said()
        away = Desk(planted | {"CELERY_BROKER_URL": broker})
        try:
            caller = Caller(away.address)
            caller.ask("/api/v1/models/m/refresh", b"{}", headers=head)
            told += caller.bodies
            away.wait_for(r"the broker is away")
            away.wait_for(r"[Cc]annot connect|consumer")
        finally:
            away.stop(signal.SIGTERM)
        told += away.said()
    told += [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if _is_ours(path)]
    if planted.get("DATABASE_URL"):
        told.append(_rows(planted["DATABASE_URL"]))
    everything = "\n".join(told)
    assert "backup" in everything
    assert [name for name, secret in SECRETS.items() if secret in everything] == []


def _is_ours(path: Path) -> bool:
    """All that the desk wrote: its data, its queue, the backup."""
    return path.is_file() and path.name != "kubeconfig" and path.parent.name != "keys"


def _rows(url: str) -> str:
    """Every row of every table of a PostgreSQL database, as text."""
    import psycopg

    with psycopg.connect(url) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        tables = [connection.execute(f'SELECT t::text FROM "{name}" t').fetchall() for (name,) in names]
    return "\n".join(str(row[0]) for rows in tables for row in rows)
