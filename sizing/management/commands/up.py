"""``manage.py up``: the whole desk in one command."""

from __future__ import annotations

import errno
import http.client
import os
import secrets
import socket
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import IntegrityError, OperationalError, connection, connections, transaction

from sizing.demo.simulated import commands
from sizing.management.desk_command import DeskCommand
from sizing.services.errors import DeskError
from sizing.supervisor import Child, Supervisor

_CELERY = [sys.executable, "-m", "celery", "--app", "llmgw_admin", "--quiet"]
DATABASE_WITHIN_S = 60.0
DEMO_FLEET = Path(__file__).resolve().parents[2] / "demo" / "fleet.yaml"


class Command(DeskCommand):
    help = "Bring the database up to date and run web, worker and schedule until Ctrl-C."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--demo", action="store_true", help="fill an empty database with a demo fleet")
        parser.add_argument("--host", default="127.0.0.1", help="address (default 127.0.0.1)")
        parser.add_argument("--port", type=int, default=settings.PORT, help="port; 0 = a free one")

    def handle(self, *args: Any, demo: bool, host: str, port: int, **options: Any) -> None:
        with _listen(host, port) as listener:
            self._wait_for_database()
            call_command("migrate", verbosity=0, interactive=False)
            self._first_administrator()
            if demo:
                self._demo()
            simulated = commands() if demo else {}
            connections.close_all()  # the parent only watches
            self._run(listener, simulated)

    def say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()

    def _wait_for_database(self) -> None:
        """A server that starts at the same time as the desk may need a while longer."""
        until = time.monotonic() + DATABASE_WITHIN_S
        told = False
        while True:
            try:
                connection.ensure_connection()
                return
            except OperationalError as error:
                if connection.vendor == "sqlite" or time.monotonic() > until:
                    raise
                if not told:
                    self.say(f"waits for the database: {' '.join(str(error).split())}")
                    told = True
                time.sleep(1)

    def _first_administrator(self) -> None:
        users = get_user_model().objects
        if users.exists():
            return
        password = secrets.token_urlsafe(12)
        try:
            with transaction.atomic():
                users.create_superuser("admin", password=password)
        except IntegrityError:  # another start was faster, and shows its password
            return
        self.say(f"user: admin   password: {password}   (shown only this once)")

    def _demo(self) -> None:
        from sizing.models import InventoryLoad, Node, ServedModel
        from sizing.services import inventory_loads
        from sizing.services.inventory import read_file

        if ServedModel.objects.exists() or Node.objects.exists():
            self.say("the database is not empty, so it stays as it is, without the demo fleet")
            return
        command = InventoryLoad.Trigger.COMMAND
        inventory_loads.load(read_file(DEMO_FLEET), name=DEMO_FLEET.name, trigger=command, user=None)
        self.say("the demo fleet is loaded")

    def _run(self, listener: socket.socket, simulated: dict[str, list[str]]) -> None:
        host, port = listener.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        sync = _worker_command("sync", port, "sync", 1)
        supervisor = Supervisor(
            [
                Child("web", _web_command(listener.fileno()), settings.BASE_DIR, [listener.fileno()]),
                Child("worker", _worker_command("up", port, "desk", 1), settings.BASE_DIR),
                # Not within the worker, which would not notice its end.
                Child("schedule", [*_CELERY, "beat", "--loglevel", "WARNING"], settings.BASE_DIR),
                Child(
                    "measuring worker",
                    _worker_command("measure", port, "measuring", settings.WORKER_PROCESSES),
                    settings.BASE_DIR,
                ),
                *([Child("cluster sync", sync, settings.BASE_DIR)] if settings.KUBERNETES.on else []),
                *(Child(name, command, settings.BASE_DIR) for name, command in simulated.items()),
            ],
            say=self.say,
        )
        answered = False

        def announce() -> None:
            nonlocal answered
            if not answered and _is_up(host, port):
                answered = True
                self.say(f"llmgw-admin is up: {address}")

        supervisor.run(announce)
        self.say("stopped")


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket, held here so that the port is not lost while the web server starts again."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None)
        if number == errno.EADDRINUSE:
            raise DeskError(f"port {port} is in use; choose another with --port") from None
        reason = os.strerror(number) if number and number > 0 else "no such address or port"
        raise DeskError(f"cannot listen on {host} port {port}: {reason}") from None


def _web_command(fd: int) -> list[str]:
    options = f"--config python:llmgw_admin.web_server --bind fd://{fd}"
    return [sys.executable, "-m", "gunicorn", "llmgw_admin.wsgi", *options.split()]


def _worker_command(name: str, port: int, queue: str, processes: int) -> list[str]:
    # The name is the desk's own on this host: RabbitMQ wants each worker to have one.
    options = (
        f"--queues {queue} --concurrency {processes} --hostname {name}-{port}@%h --loglevel WARNING"
        " --without-gossip --without-mingle --without-heartbeat"
    )
    return [*_CELERY, "worker", *options.split()]


def _is_up(host: str, port: int) -> bool:
    """Whether ``/healthz`` says that web and database work."""
    name = next((name.lstrip(".") for name in settings.ALLOWED_HOSTS if name != "*"), "localhost")
    target = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    connection = http.client.HTTPConnection(target, port, timeout=2)
    try:
        connection.request("GET", "/healthz", headers={"Host": name})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
