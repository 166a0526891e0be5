"""A running desk somebody is signed in to, whose pages are timed beside its login page."""

from __future__ import annotations

import http.client
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, sleep

from benchmarks.target_http import Server

LOGIN = "/admin/login/"
SESSION = """
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
user = User.objects.create_superuser("bench")
session = SessionStore()
session[SESSION_KEY] = str(user.pk)
session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
session[HASH_SESSION_KEY] = user.get_session_auth_hash()
session.create()
print(session.session_key)
"""


@dataclass(frozen=True)
class Took:
    """Medians of a page and of the login pages got in between, in milliseconds, by the clock and of the
    server's processor time, which other processes of the machine disturb less; and the page's size."""

    clock: float
    login_clock: float
    processor: float
    login_processor: float
    size: int

    @property
    def ratio(self) -> float:
        """Times the login page, by processor time."""
        return self.processor / self.login_processor


class Desk:
    """The pages of a running desk."""

    def __init__(self, server: Server, session: str, worker: int) -> None:
        self.server = server
        self._headers = {"Cookie": f"sessionid={session}"}
        self._tasks = Path(f"/proc/{worker}/task")
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)

    def get(self, path: str) -> bytes:
        """A page, as somebody who is signed in."""
        self._connection.request("GET", path, headers={} if path == LOGIN else self._headers)
        response = self._connection.getresponse()
        body = response.read()
        assert response.status == 200, (path, response.status, body[:300])
        return body

    def timed(self, path: str) -> tuple[float, float, int]:
        """Milliseconds by the clock and of the processor, and the size of a page."""
        begin, used = perf_counter(), self._processor_ms()
        body = self.get(path)
        return (perf_counter() - begin) * 1000, self._processor_ms() - used, len(body)

    def beside_login(
        self, path: str | Iterator[str], rounds: int, before: Callable[[], None] | None = None
    ) -> Took:
        """A page beside the login page, got in turn. An iterator gives another address each time."""
        pages, logins = [], []
        for _ in range(rounds):
            if before is not None:
                before()
            pages.append(self.timed(path if isinstance(path, str) else next(path)))
            logins.append(self.timed(LOGIN))
        return Took(
            median(page[0] for page in pages),
            median(login[0] for login in logins),
            median(page[1] for page in pages),
            median(login[1] for login in logins),
            max(page[2] for page in pages),
        )

    def _processor_ms(self) -> float:
        spent = 0
        for task in self._tasks.iterdir():
            spent += int((task / "schedstat").read_text().split()[0])
        return spent / 1e6


@contextmanager
def running(fill: Callable[[Server, Path], None]) -> Iterator[Desk]:
    """A desk of its own that `fill` has filled: warmed up, and stopped in the end."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        server.manage("migrate", "-v0")
        fill(server, Path(folder))
        session = server.manage("shell", "-v0", "-c", SESSION).strip()
        web = server.start()
        try:
            wait_for(server)
            worker = int(Path(f"/proc/{web.pid}/task/{web.pid}/children").read_text().split()[0])
            yield Desk(server, session, worker)
        finally:
            web.terminate()
            web.wait()


def wait_for(server: Server) -> None:
    """Until the desk shows a page."""
    for _ in range(200):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        try:
            connection.request("GET", LOGIN)
            connection.getresponse().read()
            return
        except OSError:
            sleep(0.1)
        finally:
            connection.close()
    raise TimeoutError("the desk does not start")
