"""`manage.py import_kubernetes FILE`: the cluster as `kubectl get … -A -o json` prints it."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from django.core.management.base import CommandParser
from django.db import DatabaseError, InterfaceError
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from sizing.inventory.kubernetes.facts import Listing
from sizing.inventory.words import quoted
from sizing.management.cluster_words import change_lines, device_lines, ignored_lines, warning_lines
from sizing.management.desk_command import DeskCommand
from sizing.models import ClusterImport
from sizing.services import cluster_imports, kubernetes
from sizing.services.database import unavailable
from sizing.services.errors import DeskError
from sizing.syncing.bringing import Outcome, refusals
from sizing.syncing.told import devices

SHOW_PROGRESS_FROM = 1_000_000


class Command(DeskCommand):
    help = (
        "Bring in the cluster as kubectl lists it: nodes with their GPUs, and pods as replicas of models. "
        "Made for: kubectl get nodes,pods,pdb -A -o json | manage.py import_kubernetes -"
    )
    requires_system_checks = []  # they would take longer than a small list

    brought = False
    """Whether the list is imported for good, whatever fails after that."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="JSON or YAML, also in gzip; - for standard input")
        parser.add_argument("--dry-run", action="store_true", help="show what would change; change nothing")
        parser.add_argument("--json", action="store_true", help="print the report as JSON")
        parser.add_argument(
            "--partial",
            action="store_true",
            help="take an incomplete list, or nodes without pods: what it leaves out stays as it is",
        )

    def handle(self, *args: Any, file: str, dry_run: bool, partial: bool, **options: Any) -> None:
        self.brought = False
        try:
            listing, size = read(file)
            if dry_run:
                outcome, away = look_at(listing, partial)
            else:
                outcome, away = self._bring(listing, file, size, partial), ""
            if options["json"]:
                self.stdout.write(json.dumps(form(outcome, away, dry_run), indent=2, allow_nan=False))
            else:
                self._show(outcome, away, dry_run)
            self.stdout.flush()
        except KeyboardInterrupt:
            self.fail("stopped" if self.brought else "stopped; nothing was changed")
        except BrokenPipeError as error:
            if not self.brought:
                raise
            self._drop_output()
            self.fail(f"cannot write the output: {error.strerror}")

    def fail(self, *lines: str) -> NoReturn:
        """As of every command; what fails when the list is imported must not look as if it were not."""
        first, *others = lines
        super().fail(f"all was imported; {first}" if self.brought else first, *others)

    def _bring(self, listing: Listing, file: str, size: int, partial: bool) -> Outcome:
        with sign_of_life("importing"):
            outcome = kubernetes.bring(listing, partial=partial)
            self.brought = True
        cluster_imports.note(
            outcome,
            name="standard input" if file == "-" else Path(file).name,
            size=size,
            partial=partial,
            trigger=ClusterImport.Trigger.COMMAND,
            user=None,
        )
        return outcome

    def _show(self, outcome: Outcome, away: str, dry_run: bool) -> None:
        write = self.stdout.write
        for line in device_lines(devices(outcome.report)):
            write(line)
        if not away:
            for line in change_lines(outcome.changes):
                write(line)
        for line in (*ignored_lines(outcome.ignored), *warning_lines(warnings_of(outcome, away))):
            write(line)
        for line in outcome.refusals:
            write(f"an import would be refused: {line}")
        if dry_run:
            write("nothing was changed: this is a dry run")


def look_at(listing: Listing, partial: bool) -> tuple[Outcome, str]:
    """What an import would do, and why that is not known where the database is of no use."""
    try:
        with sign_of_life("comparing"):
            return kubernetes.consider(listing, partial=partial), ""
    except (DatabaseError, InterfaceError) as error:
        why = unavailable(error) or "the database refused"
        report = kubernetes.report(listing)
        refused = refusals(listing, partial=partial)
        return Outcome(report, refused), f"what would change is not known: {why}"


def form(outcome: Outcome, away: str, dry_run: bool) -> dict[str, Any]:
    """The report, and beside it what changes and why an import would be refused."""
    return {
        **outcome.report,
        "warnings": warnings_of(outcome, away),
        "changes": None if away else outcome.changes,
        "ignored": outcome.ignored,
        "refusals": outcome.refusals,
        "dry_run": dry_run,
    }


def warnings_of(outcome: Outcome, away: str) -> list[str]:
    """All that is to be known, each thing once."""
    found = [*outcome.report.get("warnings", ()), *outcome.warnings, *([away] if away else [])]
    return list(dict.fromkeys(found))


def read(file: str) -> tuple[Listing, int]:
    """The list of a file, and its bytes; of standard input for `-`, whose bytes are not counted (0).

    Raises DeskError with one line that begins with the file's name.
    """
    if file == "-":
        return _listing(sys.stdin.buffer, "standard input", 0), 0
    name = file if file.isprintable() else quoted(file)
    if "\0" in file:
        raise DeskError(f"{name}: no file can have that name")
    try:
        found = Path(file).stat()
        if stat.S_ISDIR(found.st_mode):
            raise DeskError(f"{name}: a file was expected, this is a folder")
        with Path(file).open("rb") as opened:
            return _listing(opened, name, found.st_size), found.st_size
    except OSError as error:
        raise DeskError(f"{name}: {error.strerror or error}") from None


def _listing(source: BinaryIO, name: str, size: int) -> Listing:
    try:
        with progress(size) as told:
            return kubernetes.read(source, told)
    except DeskError as refusal:
        raise DeskError(f"{name}: {refusal.message}") from None


@contextmanager
def progress(size: int) -> Iterator[Callable[[float], None] | None]:
    """A bar on a terminal while a large file is read; what is yielded takes the share that is read."""
    if not sys.stderr.isatty() or 0 < size < SHOW_PROGRESS_FROM:
        yield None
        return
    columns = (TextColumn("reading"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=1.0 if size else None)
        yield lambda share: bar.update(task, completed=share)


@contextmanager
def sign_of_life(word: str) -> Iterator[None]:
    """A sign of life on a terminal while something takes long."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(word):
        yield
