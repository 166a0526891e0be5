"""``manage.py up`` as an operator sees it: real processes, one life from start to end."""

import http.client
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPCookieProcessor, build_opener

import psutil
import pytest
from django.conf import settings

pytestmark = pytest.mark.database

START_S = 60.0


class Desk:
    """One running ``up``, and what it prints."""

    def __init__(self, environment: dict[str, str], *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", *arguments],
            cwd=settings.BASE_DIR,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self._waiting: queue.Queue[str] = queue.Queue()
        for stream in (self.process.stdout, self.process.stderr):
            threading.Thread(target=self._collect, args=(stream,), daemon=True).start()
        self.address = self.wait_for(r"llmgw-admin is up: (http://\S+)")[1]

    def _collect(self, stream) -> None:
        for line in stream:
            self._waiting.put(line.rstrip("\n"))

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The first new line that matches."""
        until = time.monotonic() + START_S
        while True:
            try:
                line = self._waiting.get(timeout=max(until - time.monotonic(), 0))
            except queue.Empty:
                raise AssertionError(f"no line {pattern!r} in {self.lines}") from None
            self.lines.append(line)
            if match := re.search(pattern, line):
                return match

    def get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=10)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def child(self, word: str) -> psutil.Process:
        children = psutil.Process(self.process.pid).children()
        return next(child for child in children if word in " ".join(child.cmdline()))

    def stop(self, sign: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(sign)
        return self.process.wait(30)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An empty desk: a data folder, and a database of the kind that this run is about."""
    values = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    values |= {"DATA_DIR": str(tmp_path / "data"), "PORT": "0"}
    server = values.get("DATABASE_URL", "")
    if not server.startswith("postgres"):
        yield values
        return
    import psycopg

    name = f"up_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        parts = urlsplit(server)
        yield values | {"DATABASE_URL": parts._replace(path=f"/{name}").geturl()}
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def start(environment: dict[str, str]) -> Iterator[Callable[..., Desk]]:
    """Starts a desk; what a failed test leaves running is ended."""
    desks: list[Desk] = []

    def starting(*arguments: str) -> Desk:
        desks.append(Desk(environment, *arguments))
        return desks[-1]

    yield starting
    for desk in desks:
        if desk.process.poll() is None:
            desk.stop(signal.SIGTERM)


def until(true: Callable[[], bool], seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.1)
    return False


def alive(process: psutil.Process) -> bool:
    """A zombie is over: nobody but the machine's first process can take it away."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def sign_in(desk: Desk, user: str, password: str) -> bool:
    browser = build_opener(HTTPCookieProcessor())
    address = f"{desk.address}admin/login/"
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', browser.open(address).read().decode())
    assert token is not None
    form = {"username": user, "password": password, "csrfmiddlewaretoken": token[1]}
    answer = browser.open(f"{address}?next=/admin/", urlencode(form).encode())
    return urlsplit(answer.url).path == "/admin/"


def send_a_task(environment: dict[str, str]) -> None:
    """As the web server does it, but from a process of its own."""
    code = "import django; django.setup(); from sizing.tasks import sweep_refreshes as task; task.delay()"
    values = environment | {"DJANGO_SETTINGS_MODULE": "llmgw_admin.settings"}
    subprocess.run([sys.executable, "-c", code], cwd=settings.BASE_DIR, env=values, check=True, timeout=60)


def test_one_life_of_a_desk(start, environment):
    desk = start()
    shown = re.search(r"user: (\w+)   password: (\S+)", "\n".join(desk.lines))
    assert shown is not None
    assert sign_in(desk, shown[1], shown[2])
    assert desk.get("/healthz")[0] == 200
    assert until(lambda: "missing" not in desk.get("/healthz")[1])

    queue_folder = Path(environment["DATA_DIR"]) / "queue"
    send_a_task(environment)
    assert until(lambda: not list(queue_folder.iterdir()))

    web = desk.child("gunicorn")
    web.send_signal(signal.SIGKILL)
    desk.wait_for(r"^web ended with signal 9; it starts again in 1 s$")
    assert until(lambda: desk.get("/healthz")[0] == 200)
    assert desk.child("gunicorn").pid != web.pid

    desk.child("celery").send_signal(signal.SIGKILL)
    desk.wait_for(r"^worker ended with signal 9; it starts again in 1 s$")
    assert until(lambda: any("celery" in " ".join(process.cmdline()) for process in desk.family()))

    family = desk.family()
    assert desk.stop(signal.SIGINT) == 0
    assert not any(map(alive, family))

    again = start()
    assert "password" not in "\n".join(again.lines)
    assert sign_in(again, shown[1], shown[2])
    family = again.family()
    assert again.stop(signal.SIGTERM) == 0
    assert not any(map(alive, family))


def test_a_desk_that_is_killed_leaves_no_child(start):
    desk = start()
    family = desk.family()
    desk.process.kill()
    desk.process.wait(10)
    assert until(lambda: not any(map(alive, family)))


def test_the_demo_fills_an_empty_database_once(start):
    desk = start("--demo")
    assert "the demo fleet is loaded" in desk.lines
    desk.stop()
    again = start("--demo")
    assert "the database is not empty, so it stays as it is, without the demo fleet" in again.lines
    again.stop()


def test_a_port_in_use_is_one_line_and_code_2(environment):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "manage.py", "up", "--port", str(port)],
            cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == f"port {port} is in use; choose another with --port\n"
