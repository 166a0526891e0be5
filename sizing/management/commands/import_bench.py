"""`manage.py import_bench FILE...`: result files of the usual load generators, looked at and stored."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from sizing.domain.levels import Spread, load_words
from sizing.management.desk_command import DeskCommand
from sizing.measuring.files.texts import shown_name
from sizing.measuring.importing import Considered, ReadFile, Sweep, refused, with_labels
from sizing.measuring.importing.considering import Placed, file_form, sweep_form
from sizing.measuring.importing.finding import warnings
from sizing.models import BenchImport, Measurement
from sizing.services import imports
from sizing.services.imports import Upload, Wish

WIDTH = 180
SHOW_PROGRESS_FROM = 1_000_000


class Command(DeskCommand):
    help = (
        "Read result files of vLLM bench, GuideLLM, AIPerf, genai-perf, inference-perf, SGLang, InferenceX, "
        "llmperf and llm-d, and store what they say as a measurement."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", nargs="+", help="a result file; several form one sweep")
        parser.add_argument("--model", help="name of the model that was measured")
        parser.add_argument("--variant", help="variant that was measured (left out: the model's only one)")
        parser.add_argument("--profile", help="bench profile (left out: the model's own)")
        parser.add_argument(
            "--measured-at", metavar="ISO", help="when it was measured, for files that do not say it"
        )
        parser.add_argument("--dry-run", action="store_true", help="show what the files say; store nothing")
        parser.add_argument("--json", action="store_true", help="print it as JSON")
        parser.add_argument(
            "--force", action="store_true", help="take points of another shape than the profile's, labeled so"
        )
        parser.add_argument(
            "--leave-out-broken",
            action="store_true",
            help="store without the files that are broken and the points of another shape",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        dry, leave_out = options["dry_run"], options["leave_out_broken"]
        measured_at = imports.time_of(options["measured_at"])
        wanted = Wish(None, None, options["force"], leave_out, measured_at)
        if not dry or options["model"] or options["variant"] or options["profile"]:
            wanted = imports.wish(
                options["model"],
                options["variant"],
                options["profile"],
                force=options["force"],
                leave_out_broken=leave_out,
                measured_at=measured_at,
                to_store=not dry,
            )
        imports.check_number(len(options["file"]))
        uploads, files = read(options["file"])
        considered = imports.look_at(files, wanted)
        measurement = None
        if not dry and not considered.refused:
            measurement = self._store(uploads, files, wanted)
        if options["json"]:
            self._write_json(options["file"], considered, measurement, dry)
        else:
            self._show(considered, wanted, measurement, dry)
        if lines := considered.refused_lines:
            self.fail(*lines, *(["nothing was stored"] if not dry else []))

    def _store(self, uploads: list[Upload | None], files: list[ReadFile], wanted: Wish) -> Measurement:
        given = [(upload, file) for upload, file in zip(uploads, files, strict=True) if upload is not None]
        kept = [(upload, file) for upload, file in given if not file.result.error]
        row = imports.take(
            [upload for upload, _ in kept],
            wanted,
            trigger=BenchImport.Trigger.COMMAND,
            to_store=True,
            files=files,
        )
        assert row.measurement is not None  # it was to be stored, and nothing was refused
        return row.measurement

    def _write_json(
        self, paths: Sequence[str], considered: Considered, measurement: Measurement | None, dry: bool
    ) -> None:
        forms = [
            file_form(file, considered.slo) | {"file": path}
            for path, file in zip(paths, considered.files, strict=True)
        ]
        document: Any = forms
        if not dry:
            document = {
                "files": forms,
                "sweeps": [sweep_form(sweep, sweep is considered.counting) for sweep in considered.sweeps],
                "refused": considered.refused_lines,
                "warnings": warnings_of(considered, measurement),
                "measurement": measurement.pk if measurement else None,
            }
        self.stdout.write(json.dumps(document, indent=2, allow_nan=False))

    def _show(self, considered: Considered, wanted: Wish, measurement: Measurement | None, dry: bool) -> None:
        if considered.sweeps:
            self._write_table(considered)
        for line in warnings_of_files(considered):
            self.stdout.write(line)
        for sweep in considered.sweeps:
            self.stdout.write(figure(sweep, considered, wanted))
        for warning in warnings_of(considered, measurement):
            self.stdout.write(f"warning: {warning}")
        if dry:
            self.stdout.write("not stored: this is a dry run")
        if measurement is None:
            return
        of = measurement.variant
        self.stdout.write(
            f"stored as measurement {measurement.pk} of {of.model.name} ({of.name})"
            f" on {measurement.profile.name}, measured {measurement.measured_at:%Y-%m-%d %H:%M} UTC"
        )
        newer = imports.newer_than(measurement)
        if newer is not None:
            self.stdout.write(f"measurement {newer.pk} is newer, so it counts")

    def _write_table(self, considered: Considered) -> None:
        console = Console(width=None if self.stdout.isatty() else WIDTH)
        with console.capture() as text:
            console.print(table_of(considered))
        self.stdout.write(text.get().rstrip())


def warnings_of(considered: Considered, measurement: Measurement | None) -> list[str]:
    """What stands beside the measurement, or would."""
    return list(measurement.warnings) if measurement else warnings(considered, timezone.now())


def read(paths: Sequence[str]) -> tuple[list[Upload | None], list[ReadFile]]:
    """Each file as an upload and as it was read; one that cannot be opened is None, with the reason."""
    uploads: list[Upload | None] = []
    files: list[ReadFile] = []
    labels = with_labels(shown_name(path) or '""' for path in paths)
    found = [upload_of(path, label) for path, label in zip(paths, labels, strict=True)]
    total = sum(one.size for one in found if isinstance(one, Upload))
    with progress(total) as told:
        for label, one in zip(labels, found, strict=True):
            if isinstance(one, Upload):
                uploads.append(one)
                try:
                    files += imports.read_all([one], told)
                except OSError as error:
                    uploads[-1] = None
                    files.append(refused(label, f"{label}: {error.strerror or error}"))
            else:
                uploads.append(None)
                files.append(refused(label, f"{label}: {one}"))
    return uploads, files


def upload_of(path: str, label: str) -> Upload | str:
    """A regular file to be read, or in words why there is none."""
    if not path:
        return "the name of a file was expected"
    try:
        found = Path(path).stat()
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    if stat.S_ISDIR(found.st_mode):
        return "a file was expected, this is a folder"
    if not stat.S_ISREG(found.st_mode):
        return "a regular file was expected"
    return Upload(label, found.st_size, lambda: Path(path).open("rb"))


@contextmanager
def progress(total: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal while large files are read; what is yielded takes the bytes that are done."""
    if total < SHOW_PROGRESS_FROM or not sys.stderr.isatty():
        yield lambda size: None
        return
    bar = Progress(TextColumn("reading"), BarColumn(), DownloadColumn(), console=Console(stderr=True))
    with bar:
        task = bar.add_task("reading", total=total)
        yield lambda size: bar.advance(task, size)


def figure(sweep: Sweep, considered: Considered, wanted: Wish) -> str:
    """What a sweep says, in one line."""
    found = sweep.throughput
    words = {"poisson": "open loop", "concurrency": "closed loop", None: "a load that is not told"}
    points = f"{len(sweep.points)} level{'s' * (len(sweep.points) > 1)}"
    what = f"{words[sweep.arrival]}, {points}"
    if wanted.variant is not None and wanted.profile is not None and sweep is considered.counting:
        what = f"{wanted.variant.model.name} ({wanted.variant.name}) on {wanted.profile.name}: {what}"
    if found.tok_per_sec is None:
        return f"{what}: {found.bracket}"
    return f"{what}: {found.tok_per_sec:,.1f} tok/s a replica, {found.bound} ({found.bracket})"


def table_of(considered: Considered) -> Table:
    """The points of all files as a table for a terminal."""
    percentile = considered.slo.percentile
    table = Table(title="Load points, by file", title_justify="left")
    for name in ("point", "load", "tok/s", "requests", "failed"):
        table.add_column(name, justify="left" if name in ("point", "load") else "right", overflow="fold")
    for name in ("TTFT", "TPOT", "E2E"):
        table.add_column(f"{name} p{percentile:g} ms", justify="right")
    table.add_column("verdict")
    table.add_column("why", overflow="fold")
    folder = common_folder([here.place for sweep in considered.sweeps for here in sweep.points])
    for sweep in considered.sweeps:
        for here in sorted(sweep.points, key=by_load):
            level = here.judged.level
            table.add_row(
                Text(here.place.removeprefix(folder)),
                load_words(level.arrival, level.load),
                number(level.tok_per_sec),
                number(level.sent if level.sent is not None else level.completed, 0),
                number(level.failed, 0),
                *(latency(spread, percentile) for spread in (level.ttft, level.tpot, level.e2e)),
                str(here.judged.verdict),
                Text(here.judged.why),
            )
    return table


def by_load(here: Placed) -> tuple[bool, float]:
    """Rising load, what is not limited last."""
    load = here.judged.level.load
    return load is None, load or 0.0


def common_folder(places: Sequence[str]) -> str:
    """The folder that all are in, with its slash; empty where there is none."""
    folders = {place.rpartition("/")[0] for place in places}
    return f"{folders.pop()}/" if len(folders) == 1 and folders != {""} else ""


def latency(spread: Spread, percentile: float) -> str:
    """The value at the percentile, else at one that tells of it, named: `p99 61.5`."""
    if percentile in spread.at:
        return number(spread.at[percentile])
    others = sorted(spread.at, key=lambda at: (at < percentile, abs(at - percentile)))
    return f"p{others[0]:g} {number(spread.at[others[0]])}" if others else "–"


def warnings_of_files(considered: Considered) -> list[str]:
    """What is odd about the files, each thing once and in how many."""
    found: dict[str, list[str]] = {}
    for file in considered.files:
        for warning in file_form(file, considered.slo)["warnings"]:
            found.setdefault(warning, []).append(file.result.file)
    return [
        f"{names[0]}: {warning}" if len(names) == 1 else f"in {len(names)} files: {warning}"
        for warning, names in found.items()
    ]


def number(value: float | None, places: int = 1) -> str:
    return "–" if value is None else f"{value:,.{places}f}"
