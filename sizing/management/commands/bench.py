"""``manage.py bench``: measure now, from here, and show it."""

from __future__ import annotations

import json
import signal
import sys
from argparse import ArgumentParser
from types import FrameType
from typing import Any, NoReturn

from django.db import transaction
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from sizing.domain.levels import Judged, load_words
from sizing.management.desk_command import DeskCommand
from sizing.measuring import refreshes
from sizing.measuring.bench import Outcome, Status
from sizing.measuring.refreshes import Claim
from sizing.measuring.running import RowObserver, measure_claimed
from sizing.models import Measurement, Refresh
from sizing.services import refreshes as service
from sizing.services.errors import DeskError

SLO_NEVER_MET = 1
LARGEST = 1e9
WIDTH = 160


class Command(DeskCommand):
    help = "Measure what one replica of a model serves at its SLO. Nothing is stored without --save."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("model", help="name of the model")
        parser.add_argument("--profile", help="bench profile (left out: the model's own)")
        parser.add_argument("--variant", help="variant (left out: the first with a replica to measure)")
        parser.add_argument("--replica", help="the replica to measure (left out: any that is benchable)")
        parser.add_argument("--save", action="store_true", help="store the measurement")
        parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
        parser.add_argument("--seed", type=int, help="seed of prompts and arrivals")
        parser.add_argument("--budget", type=float, metavar="S", help="seconds for the whole measurement")
        parser.add_argument("--level", type=float, metavar="S", help="seconds for one level at most")
        parser.add_argument("--lowest", type=float, help="lowest load to try: streams or requests/s")
        parser.add_argument("--highest", type=float, help="highest load to try: streams or requests/s")
        parser.add_argument("--generator", choices=("builtin", "guidellm"), help="what makes the load")

    def handle(self, *args: Any, **options: Any) -> None:
        claim, row = self._begin(options)
        follower = Follower(claim, row, quiet=options["json"])
        with follower:
            outcome = measure_claimed(claim, follower)
        row.refresh_from_db()
        if outcome is None:
            self._say_why(row, follower)
        measurement = Measurement.objects.filter(refresh=row).first()
        if options["json"]:
            self.stdout.write(json.dumps(form_of(row, claim, outcome, measurement), indent=2))
        else:
            self._show(row, outcome, measurement)
        if outcome.throughput.tok_per_sec is None:
            raise SystemExit(SLO_NEVER_MET)

    def _begin(self, options: dict[str, Any]) -> tuple[Claim, Refresh]:
        """A row that this process has claimed, so that nobody else measures on the node meanwhile."""
        refreshes.sweep()  # without a worker nobody else lets go of what a killed command held
        with transaction.atomic():
            row = service.request(
                options["model"],
                options["profile"],
                options["variant"],
                options["replica"],
                trigger=Refresh.Trigger.COMMAND,
                save_result=options["save"],
                options=chosen(options),
                wake=False,
            )
            claim = refreshes.claim(row.pk)
            if claim is None:
                row.refresh_from_db()
                raise DeskError(
                    row.error or row.message or "another worker took it", code="conflict", status=409
                )
        return claim, Refresh.objects.select_related("variant__model", "profile").get(pk=row.pk)

    def _say_why(self, row: Refresh, follower: Follower) -> NoReturn:
        if row.state != Refresh.State.CANCELLED:
            self.fail(row.error or f"refresh {row.pk} was taken by another worker")
        count = len(follower.levels)
        if not count:
            self.fail("stopped before a level was finished; nothing was stored")
        self._write_table(follower.levels, row)
        kept = f"the {count} finished levels are" if count != 1 else "the finished level is"
        self.fail(f"stopped; {kept} kept in refresh {row.pk}, and nothing was stored as a measurement")

    def _show(self, row: Refresh, outcome: Outcome, measurement: Measurement | None) -> None:
        self._write_table(list(outcome.levels), row)
        result, write = outcome.throughput, self.stdout.write
        what = f"{row.variant.model.name} ({row.variant.name}) on {row.profile.name}"
        if result.tok_per_sec is None:
            write(f"{what}: the SLO is {result.bracket}")
        else:
            write(f"{what}: {result.tok_per_sec:,.1f} tok/s a replica, {result.bound} ({result.bracket})")
        for warning in outcome.warnings:
            write(f"warning: {warning}")
        if measurement is not None:
            write(f"stored as measurement {measurement.pk}")
        else:
            write("not stored; --save stores it")

    def _write_table(self, levels: list[Judged], row: Refresh) -> None:
        console = Console(width=None if self.stdout.isatty() else WIDTH)
        with console.capture() as text:
            console.print(table_of(levels, float(row.profile.percentile)))
        self.stdout.write(text.get().rstrip())


class Follower:
    """Follows a measurement on the terminal and in its row; Ctrl-C asks it to stop."""

    def __init__(self, claim: Claim, row: Refresh, quiet: bool) -> None:
        self.row_observer = RowObserver(claim)
        self.claim = claim
        self.levels: list[Judged] = []
        self.stopping = False
        title = f"{row.variant.model.name} on {row.profile.name}"
        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[words]}", markup=False),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            disable=quiet or not sys.stderr.isatty(),
        )
        self.line_each_level = not quiet and not sys.stderr.isatty()
        self.task = self.bar.add_task(title, total=100, words="")

    def __enter__(self) -> Follower:
        self.before = {s: signal.signal(s, self._stop) for s in (signal.SIGINT, signal.SIGTERM)}
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.stopping:  # asked twice: at once
            raise KeyboardInterrupt
        self.stopping = True

    def status(self, status: Status) -> bool:
        self.bar.update(self.task, completed=status.percent, words=words_of(status))
        if self.stopping:
            refreshes.cancel(self.claim.pk)
            return False
        return self.row_observer.status(status)

    def level(self, position: int, judged: Judged) -> bool:
        if not self.row_observer.level(position, judged):
            return False
        self.levels.append(judged)
        if self.line_each_level:
            load = load_words(judged.level.arrival, judged.level.load)
            rate = judged.level.tok_per_sec or 0
            print(
                f"level {position}, {load}: {judged.verdict}, {rate:,.1f} tok/s", file=sys.stderr, flush=True
            )
        return True


def chosen(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a measurement that were given; DeskError where one cannot be meant."""
    names = {"budget": "budget_s", "level": "level_s"}
    found: dict[str, Any] = {}
    for name in ("seed", "budget", "level", "lowest", "highest"):
        value = options[name]
        if value is None:
            continue
        if not 0 <= value <= LARGEST or (value == 0 and name != "seed"):
            raise DeskError(f"--{name} {value:g} is out of bounds")
        found[names.get(name, name)] = value
    if options["generator"] is not None:
        found["generator"] = options["generator"]
    if found.get("lowest", 0) > found.get("highest", LARGEST):
        raise DeskError("--lowest is above --highest")
    return found


def words_of(status: Status) -> str:
    """What the bar says beside itself."""
    if status.load is None:
        return status.purpose
    progress = status.progress
    return (
        f"level {status.level} of about {status.most}, {load_words(status.arrival, status.load)}:"
        f" {progress.completed:,} requests, {progress.tok_per_sec:,.0f} tok/s"
    )


def table_of(levels: list[Judged], percentile: float) -> Table:
    """The levels as a table for a terminal."""
    table = Table(title="Levels, in the order in which they were measured", title_justify="left")
    for name in (
        "load",
        "tok/s",
        "requests",
        "failed",
        "TTFT p95 ms",
        "TPOT p95 ms",
        "E2E p95 ms",
        "verdict",
    ):
        table.add_column(name, justify="left" if name in ("load", "verdict") else "right")
    table.add_column("why", overflow="fold")
    for judged in levels:
        level = judged.level
        table.add_row(
            load_words(level.arrival, level.load),
            _number(level.tok_per_sec),
            _number(level.sent, 0),
            _number(level.failed, 0),
            *(_number(spread.at.get(percentile)) for spread in (level.ttft, level.tpot, level.e2e)),
            str(judged.verdict),
            judged.why,
        )
    return table


def _number(value: float | None, places: int = 1) -> str:
    return "–" if value is None else f"{value:,.{places}f}"


def form_of(row: Refresh, claim: Claim, outcome: Outcome, measurement: Measurement | None) -> dict[str, Any]:
    """The outcome for scripts."""
    result = outcome.throughput
    return {
        "model": row.variant.model.name,
        "variant": row.variant.name,
        "profile": row.profile.name,
        "replica": claim.replica.name,
        "tok_per_sec": result.tok_per_sec,
        "bound": result.bound,
        "load": result.load,
        "bracket": result.bracket,
        "engine": outcome.engine,
        "warnings": list(outcome.warnings),
        "levels": [
            {"verdict": judged.verdict.value, "why": judged.why, **judged.level.as_dict()}
            for judged in outcome.levels
        ],
        "refresh": row.pk,
        "measurement": measurement.pk if measurement else None,
    }
