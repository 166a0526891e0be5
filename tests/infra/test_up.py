"""``manage.py up`` as an operator sees it: real processes, one life from start to end."""

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPCookieProcessor, build_opener

import pytest
from django.conf import settings

from tests.infra.desk import Desk, alive, environment_of, until

pytestmark = pytest.mark.database


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    with environment_of(tmp_path / "data") as values:
        yield values


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
