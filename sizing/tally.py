"""What the processes of one web server count, so that any of them can tell the sum of all.

Counting is a step in memory. A moment after something was counted, the process writes its sums to a file of
its own in a folder that the processes share; who is asked for the totals adds the files of the others to
what it knows itself. A file of a process that ended stays for as long as its web server runs, so that no
total ever falls. A disk that is full costs the others' newest sums and nothing else.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

Labels = tuple[tuple[str, str], ...]
Key = tuple[str, Labels]

BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""The upper bounds of the buckets that durations are counted in; one more has no bound."""

WRITTEN_AFTER_S = 1.0
FOREIGN_KEPT_S = 7 * 24 * 3600
"""Of web servers on other hosts with the same folder nothing is known but when they last wrote."""


class Tally:
    """Sums by name and labels. `times` has for each the buckets' counts, not added up, then the seconds."""

    def __init__(self) -> None:
        self.counts: dict[Key, float] = {}
        self.times: dict[Key, list[float]] = {}

    def add(self, other: Tally) -> None:
        """Add another's sums to these."""
        for key, amount in other.counts.items():
            self.counts[key] = self.counts.get(key, 0.0) + amount
        for key, values in other.times.items():
            mine = self.times.setdefault(key, [0.0] * len(values))
            self.times[key] = [a + b for a, b in zip(mine, values, strict=True)]

    def as_json(self) -> str:
        """As text, for a file."""
        return json.dumps(
            [[[*key, value] for key, value in kept.items()] for kept in (self.counts, self.times)]
        )

    @classmethod
    def from_json(cls, text: str) -> Tally:
        """What `as_json` wrote; ValueError where it is something else."""
        found = cls()
        counts, times = json.loads(text)
        found.counts = {(name, _labels(labels)): float(value) for name, labels, value in counts}
        found.times = {(name, _labels(labels)): [*map(float, values)] for name, labels, values in times}
        return found


def _labels(pairs: list[list[str]]) -> Labels:
    return tuple((name, value) for name, value in pairs)


_own = Tally()
_lock = threading.Lock()
_changed = threading.Event()
_folder: Path | None = None
_file: Path | None = None
_writer: threading.Thread | None = None


def count(name: str, amount: float = 1.0, **labels: str) -> None:
    """Add to a sum."""
    key = (name, tuple(labels.items()))
    with _lock:
        _own.counts[key] = _own.counts.get(key, 0.0) + amount
    _note_change()


def took(name: str, seconds: float, **labels: str) -> None:
    """Count a duration."""
    key = (name, tuple(labels.items()))
    with _lock:
        values = _own.times.get(key)
        if values is None:
            values = _own.times[key] = [0.0] * (len(BOUNDS_S) + 2)
        values[bisect_left(BOUNDS_S, seconds)] += 1
        values[-1] += seconds
    _note_change()


def totals() -> Tally:
    """The sums of all processes of this web server; of another one's as it wrote them last."""
    found = Tally()
    with _lock:
        found.add(_own)
    for path in _files():
        if path != _file:
            with suppress(OSError, ValueError):  # it is not written yet, or cannot be
                found.add(Tally.from_json(path.read_text(encoding="utf-8")))
    return found


def share_in(folder: Path) -> None:
    """For a web process at its start: share its sums with its siblings, in a part of *folder* of their own.

    What web servers that are over have left there is cleared away. Processes that never call this count for
    themselves alone.
    """
    global _folder
    parent = os.getppid()
    _folder = folder / f"{_host()}.{parent}.{_began(parent)}"
    with suppress(OSError):
        _folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for other in folder.iterdir():
            if other != _folder and _is_over(other):
                shutil.rmtree(other, ignore_errors=True)
    atexit.register(_write)


def _note_change() -> None:
    global _writer
    if _folder is None or _changed.is_set():
        return
    _changed.set()
    if _writer is None or not _writer.is_alive():
        _writer = threading.Thread(target=_keep_writing, daemon=True, name="tally")
        _writer.start()


def _keep_writing() -> None:
    while True:
        _changed.wait()
        time.sleep(WRITTEN_AFTER_S)
        _changed.clear()
        _write()


def _write() -> None:
    global _file
    if _folder is None:
        return
    _file = _file or _folder / f"{os.getpid()}.{time.time_ns()}.json"
    draft = _file.with_suffix(".draft")
    with _lock:
        text = _own.as_json()
    with suppress(OSError):
        draft.write_text(text, encoding="utf-8")
        draft.rename(_file)


def _files() -> Iterator[Path]:
    if _folder is not None:
        with suppress(OSError):
            yield from sorted(_folder.glob("*.json"))


def _host() -> str:
    return "".join(sign if sign.isalnum() or sign == "-" else "-" for sign in socket.gethostname())


def _began(pid: int) -> str:
    """When a process began, as the system counts it; numbers of processes are used again, this is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "0"


def _is_over(folder: Path) -> bool:
    """Whether the web server is gone that a part of the folder belongs to."""
    host, pid, began = [*folder.name.split("."), "", ""][:3]
    if host == _host() and pid.isdecimal():
        return _began(int(pid)) != began
    return all(time.time() - path.stat().st_mtime > FOREIGN_KEPT_S for path in (folder, *folder.iterdir()))


def _forget() -> None:
    """In a child that was forked after counting began: its parent's sums are not its own."""
    global _own, _lock, _changed, _file, _writer
    _own, _lock, _changed, _file, _writer = Tally(), threading.Lock(), threading.Event(), None, None


os.register_at_fork(after_in_child=_forget)
