"""The demo fleet's simulated replicas: which they are, and how they are started."""

from __future__ import annotations

import socket
import sys
from dataclasses import dataclass

from sizing.models import Replica
from sizing.models.locking import inventory_lock


@dataclass(frozen=True, slots=True)
class SimulatedReplica:
    """A replica of the demo fleet; a step of it takes `t0 + a × batch` milliseconds."""

    name: str
    model: str
    t0: float
    a: float


SIMULATED = (
    # At 50 ms a token each serves some 27 streams, 555 tok/s; and 58 streams, 1,160 tok/s.
    SimulatedReplica("tiny-8b-0", "simulated/tiny-8b", t0=20, a=1),
    SimulatedReplica("tiny-1b-0", "simulated/tiny-1b", t0=10, a=0.5),
)


def commands() -> dict[str, list[str]]:
    """The command of each simulated replica that the inventory has, by name; its endpoint is written there.

    Ports are free ones of this machine, taken anew at each start.
    """
    found = {}
    with inventory_lock():
        for simulated in SIMULATED:
            of_demo = Replica.objects.filter(name=simulated.name, variant__model__name=simulated.model)
            port = _free_port()
            if of_demo.update(endpoint=f"http://127.0.0.1:{port}/v1"):
                found[simulated.name] = _command(simulated, port)
    return found


def _command(simulated: SimulatedReplica, port: int) -> list[str]:
    options = f"--port {port} --t0 {simulated.t0} --a {simulated.a} --p 0.05 --model {simulated.model}"
    return [sys.executable, "-m", "sizing.measuring.simulated", *options.split()]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port
