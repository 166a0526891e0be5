"""The table: a row for each fault in each set-up, printed as soon as it is known."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from benchmarks.faults import hosts, kills, outages
from benchmarks.faults.client import signed_in
from benchmarks.faults.clock import clock_in
from benchmarks.faults.judging import HEAD, Cell
from benchmarks.faults.setups import running
from tests.faults.rows import rows_of
from tests.infra.desk import Desk
from tests.measuring.simulated import simulated_replica
from tests.services.setups import SetUp


def table(asked: argparse.Namespace) -> int:
    """Every cell that is asked for; 1 where something was lost or doubled."""
    bad = 0
    print(HEAD, flush=True)
    for setup in asked.setup:
        for fault in asked.fault:
            for cell in _cells(setup, fault, asked):
                print(cell.line(), flush=True)
                bad += cell.lost + cell.doubled
    return 1 if bad else 0


def _cells(setup: str, fault: str, asked: argparse.Namespace) -> Iterator[Cell]:
    if fault == "kill":
        yield from _kills(setup, asked)
    elif fault == "gone":
        yield from _outages(setup, asked)
    elif fault == "disk" and setup == "files":
        yield from _full_disk(setup, asked)
    elif fault == "clock":
        yield from _clocks(setup, asked)
    elif fault == "hosts" and setup != "files":
        with scene(setup) as here:
            yield _repeated(
                asked.runs, Cell(setup, "two hosts, one lost"), lambda cell: hosts.lost(here, cell)
            )


def _kills(setup: str, asked: argparse.Namespace) -> Iterator[Cell]:
    with scene(setup) as here:
        for victim in asked.victim or kills.VICTIMS:
            if victim == "database" and not here.setup.servers:
                continue
            for step in asked.step or kills.STEPS:
                cell = Cell(setup, f"kill {victim}: {step}")
                yield _repeated(asked.runs, cell, partial(kills.kill, here, step, victim))


def _outages(setup: str, asked: argparse.Namespace) -> Iterator[Cell]:
    with scene(setup) as here:
        if setup == "files":
            cell = Cell(setup, f"database locked for {asked.gone:g} s")
            yield _repeated(asked.runs, cell, lambda cell: outages.locked(here, asked.gone, cell))
            return
        for what in asked.victim or ("broker", "database"):
            cell = Cell(setup, f"{what} gone for {asked.gone:g} s")
            yield _repeated(asked.runs, cell, partial(outages.gone, here, what, asked.gone))


def _full_disk(setup: str, asked: argparse.Namespace) -> Iterator[Cell]:
    with running(setup) as servers, outages.small_disk(servers.folder / "a") as mounted:
        if not mounted:
            print("disk: there is no leave to mount a small file system", file=sys.stderr)
            return
        with desk_on(servers) as here:
            cell = Cell(setup, f"disk full for {asked.gone:g} s")
            yield _repeated(asked.runs, cell, lambda cell: outages.full(here, asked.gone, cell))


def _clocks(setup: str, asked: argparse.Namespace) -> Iterator[Cell]:
    """On one host its clock is set; of two hosts one has a wrong one."""
    for hours in (1, -1):
        with running(setup) as servers:
            clock = clock_in(servers.folder)
            if clock is None:
                print("clock: there is no C compiler", file=sys.stderr)
            elif servers.servers:
                with desk_on(servers) as here:
                    cell = Cell(setup, f"clock of one host {hours:+d} h")
                    yield _repeated(asked.runs, cell, partial(hosts.skewed, here, hours, clock))
            else:
                with desk_on(servers, clock.environment) as here:
                    cell = Cell(setup, f"clock set by {hours:+d} h")
                    yield _repeated(asked.runs, cell, partial(hosts.stepped, here, hours, clock))


def _repeated(runs: int, cell: Cell, once: Callable[[Cell], None]) -> Cell:
    for _ in range(runs):
        once(cell)
    return cell


@contextmanager
def scene(setup: str) -> Iterator[kills.Scene]:
    """A desk on a set-up of its own."""
    with running(setup) as servers, desk_on(servers) as here:
        yield here


@contextmanager
def desk_on(servers: SetUp, more: Mapping[str, str] | None = None) -> Iterator[kills.Scene]:
    """A desk on servers that run, its rows, and a replica that does all as it should."""
    environment = servers.host("a") | dict(more or {})
    desk = Desk(environment)
    try:
        with rows_of(environment), simulated_replica(t0=5, a=0.1, p=0.001) as replica:
            here = kills.Scene(servers, desk, signed_in(), replica)
            here.undisturbed_s = kills.undisturbed(here)
            print(f"{servers.name}: an undisturbed refresh takes {here.undisturbed_s:.1f} s", file=sys.stderr)
            yield here
    finally:
        desk.stop(signal.SIGTERM)
