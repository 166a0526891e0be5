"""A simulated replica as a program: its arguments, its socket, its end."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from sizing.measuring.simulated.engine import Costs
from sizing.measuring.simulated.faults import BadFaultError, faults_help, read_faults
from sizing.measuring.simulated.replica import Replica, Settings

DESCRIPTION = "Run a replica that serves no model but has a known capacity, until Ctrl-C."
BACKLOG = 1024


class CannotServe(Exception):  # noqa: N818  it reads as what it says
    """The replica cannot start, with the reason in one line."""


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of the program and of the command."""
    costs = Costs()
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address (default 127.0.0.1)")
    add("--port", type=_port, default=0, help="port; 0 = a free one (default)")
    add("--model", default="simulated", help="the name that it serves (default simulated)")
    add("--t0", type=_ms, default=costs.t0, help=f"ms of each step (default {costs.t0:g})")
    add("--a", type=_ms, default=costs.a, help=f"ms of each sequence in a step (default {costs.a:g})")
    add("--p", type=_ms, default=costs.p, help=f"ms of each prompt token in a step (default {costs.p:g})")
    add("--max-seqs", type=_count, default=costs.max_seqs, help=f"slots (default {costs.max_seqs})")
    add(
        "--prefill-budget",
        type=_count,
        default=costs.prefill_budget,
        help=f"prompt tokens that a step can prefill (default {costs.prefill_budget})",
    )
    add("--key-env", metavar="NAME", help="ask for the API key that this environment variable holds")
    add(
        "--fault",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="what goes wrong (repeatable); --fault help lists them all",
    )


def serve(options: Mapping[str, Any], say: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; CannotServe where that cannot begin."""
    if "help" in options["fault"]:
        say(faults_help())
        return
    settings = _settings(options)
    with _listen(options["host"], options["port"]) as listener:
        asyncio.run(_serve(settings, listener, say))


def _settings(options: Mapping[str, Any]) -> Settings:
    name, key = options["key_env"], ""
    if name is not None:
        key = os.environ.get(name, "")
        if not key:
            raise CannotServe(f"the environment variable {name} holds no key")
    try:
        faults = read_faults(options["fault"])
    except BadFaultError as error:
        raise CannotServe(str(error)) from None
    costs = Costs(options["t0"], options["a"], options["p"], options["max_seqs"], options["prefill_budget"])
    if not costs.t0 + costs.a:
        raise CannotServe("--t0 and --a are both 0, but a step must take time")
    return Settings(options["model"], costs, faults, key)


async def _serve(settings: Settings, listener: socket.socket, say: Callable[[str], None]) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sign, stop.set)
    replica = Replica(settings)
    # A client that goes away ends its request, as with real engines; nothing is finished at the end.
    logging.getLogger("aiohttp.server").addFilter(_is_worth_a_line)
    runner = web.AppRunner(replica.app(), access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    traffic = asyncio.create_task(replica.foreign_traffic()) if settings.faults.foreign_traffic else None
    try:
        await web.SockSite(runner, listener, backlog=BACKLOG).start()
        host, port = listener.getsockname()[:2]
        say(f"simulated replica of {settings.model}: http://{f'[{host}]' if ':' in host else host}:{port}/v1")
        await stop.wait()
    finally:
        if traffic:
            traffic.cancel()
            with suppress(asyncio.CancelledError):
                await traffic
        await runner.cleanup()


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Whether it is no client's doing: one may send what is not HTTP, or leave before the answer begins."""
    clients = (HttpProcessingError, ConnectionResetError)
    return not (record.exc_info and isinstance(record.exc_info[1], clients))


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CannotServe(f"port {port} is in use; choose another with --port") from None
        number = error.errno
        reason = os.strerror(number) if number and number > 0 else "no such address"
        raise CannotServe(f"cannot listen on {host} port {port}: {reason}") from None


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise ArgumentTypeError(f"a port is a whole number from 0 to 65535, not {text!r}")
    return int(text)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 10**6:
        raise ArgumentTypeError(f"a whole number from 1 to 1000000, not {text!r}")
    return int(text)


def _ms(text: str) -> float:
    with suppress(ValueError):
        number = float(text)
        if 0 <= number <= 60_000:
            return number
    raise ArgumentTypeError(f"milliseconds from 0 to 60000, not {text!r}")
