"""A whole desk for tests: real processes, started by ``manage.py up`` on data of their own."""

from __future__ import annotations

import http.client
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from django.conf import settings

from sizing.supervisor import end_with

START_S = 60.0


class Desk:
    """One running ``up``, and what it prints."""

    def __init__(self, environment: dict[str, str], *arguments: str) -> None:
        self.environment = environment
        self.arguments = arguments
        self.start()

    def start(self) -> None:
        """Start it, or start it again on what an earlier run left; wait until it is up."""
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", *self.arguments],
            cwd=settings.BASE_DIR,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=end_with(os.getpid()),
        )
        self.lines: list[str] = []
        self._waiting: queue.Queue[str] = queue.Queue()
        for stream in (self.process.stdout, self.process.stderr):
            threading.Thread(target=self._collect, args=(stream, self._waiting), daemon=True).start()
        self.address = self.wait_for(r"llmgw-admin is up: (http://\S+)")[1]

    def _collect(self, stream, lines: queue.Queue[str]) -> None:
        for line in stream:
            lines.put(line.rstrip("\n"))

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

    def said(self) -> list[str]:
        """All that it printed so far."""
        return [*self.lines, *self._waiting.queue]

    def get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=10)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def child(self, word: str) -> psutil.Process:
        """The child of which the command holds a word, once it runs."""
        found: list[psutil.Process] = []

        def runs() -> bool:
            children = filter(alive, psutil.Process(self.process.pid).children())
            found[:] = [child for child in children if word in " ".join(child.cmdline())]
            return bool(found)

        assert until(runs), f"no {word}"
        return found[0]

    def stop(self, sign: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(sign)
        return self.process.wait(30)


@contextmanager
def environment_of(folder: Path, server: str | None = None) -> Iterator[dict[str, str]]:
    """An empty desk: a data folder, and a database of its own.

    server: the URL of the PostgreSQL to make it on; empty: SQLite; None: the kind that this run is about.
    """
    values = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    if server is None:
        server = values.get("DATABASE_URL", "")
    values |= {"DATA_DIR": str(folder), "PORT": "0", "DATABASE_URL": server}
    if not server.startswith("postgres"):
        yield values
        return
    import psycopg

    name = f"up_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield values | {"DATABASE_URL": urlsplit(server)._replace(path=f"/{name}").geturl()}
    with psycopg.connect(server, autocommit=True) as connection:  # anew: the server may have been killed
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


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
