"""Child processes that are kept running until they are all stopped together."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0
STEADY_AFTER_S = 60.0  # a child that ran this long starts again without a long wait
GRACE_S = 15.0  # to finish what it is at; what is cut off is taken up again by the sweep


class Child:
    """One program, started again with growing pauses whenever it ends by itself."""

    def __init__(self, name: str, command: Sequence[str], folder: Path, pass_fds: Sequence[int] = ()) -> None:
        self.name = name
        self.command = list(command)
        self.folder = folder
        self.pass_fds = tuple(pass_fds)
        self.wait_s = FIRST_WAIT_S
        self.started_at = 0.0
        self.start_again_at = 0.0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        # A group of its own: Ctrl-C reaches the parent alone, and the whole group can be ended with it.
        self.process = subprocess.Popen(
            self.command,
            cwd=self.folder,
            pass_fds=self.pass_fds,
            start_new_session=True,
            preexec_fn=end_with(os.getpid()),
        )
        self.started_at = time.monotonic()

    def look_after(self, say: Callable[[str], None]) -> None:
        """Start the child if it is due; note its end, and say so."""
        now = time.monotonic()
        if self.process is None:
            if now >= self.start_again_at:
                self.start()
            return
        code = self.process.poll()
        if code is None:
            return
        self.kill_group()  # what a killed leader left behind
        self.process = None
        if now - self.started_at >= STEADY_AFTER_S:
            self.wait_s = FIRST_WAIT_S
        say(f"{self.name} ended with {_exit_words(code)}; it starts again in {self.wait_s:g} s")
        self.start_again_at = now + self.wait_s
        self.wait_s = min(self.wait_s * 2, LONGEST_WAIT_S)

    def ask_to_stop(self) -> None:
        if self.process is not None:
            self.process.terminate()

    def wait(self, seconds: float) -> None:
        """Wait for the end, at most *seconds*, then make an end of all that is left."""
        if self.process is not None:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(max(seconds, 0))
            self.kill_group()
            self.process.wait()

    def kill_group(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)


class Supervisor:
    """Runs its children until :meth:`stop` is called, by a signal as a rule."""

    def __init__(self, children: Sequence[Child], say: Callable[[str], None]) -> None:
        self.children = children
        self.say = say
        self.stopping = False

    def stop(self, *_: object) -> None:
        """End the run; the second call ends it at once."""
        if self.stopping:
            for child in self.children:
                child.kill_group()
        self.stopping = True

    def run(self, each_round: Callable[[], None]) -> None:
        """Keep the children running and call *each_round* a few times a second; leave none behind."""
        handlers = {sign: signal.signal(sign, self.stop) for sign in (signal.SIGINT, signal.SIGTERM)}
        try:
            while not self.stopping:
                for child in self.children:
                    child.look_after(self.say)
                each_round()
                time.sleep(0.2)
        finally:
            self._stop_children()
            for sign, handler in handlers.items():
                signal.signal(sign, handler)

    def _stop_children(self) -> None:
        for child in self.children:
            child.ask_to_stop()
        until = time.monotonic() + GRACE_S
        for child in self.children:
            child.wait(until - time.monotonic())


def _exit_words(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def end_with(parent: int) -> Callable[[], None] | None:
    """For a child process to call: ask Linux to kill it when *parent* is; elsewhere there is no such thing.

    A polite signal would not do: a worker that is asked to end first ends the measurement that it is at.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    set_death_signal = 1

    def ask() -> None:
        prctl(set_death_signal, signal.SIGKILL)
        if os.getppid() != parent:  # it was killed in between
            os._exit(1)

    return ask
