"""The maker: starts GuideLLM, watches it, ends it, and hands over what it found."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from sizing.domain.levels import Level
from sizing.measuring.guidellm import leash
from sizing.measuring.guidellm.plan import PROMPTS, REPORT, level_seconds, most_requests, scenario
from sizing.measuring.guidellm.report import read_report
from sizing.measuring.guidellm.target import Target, checked_target
from sizing.measuring.loadgen.prompts import Prompts
from sizing.measuring.seam import Endpoint, Limits, Load, MeasuringError, Progress, Stopped, Watch, Workload

KNOWN_VERSION = "0.8.1"
ATTEMPTS = 3
SEED_STEP = 1_000_003
AROUND_S = 60.0
"""What a run may take beside its load, on a busy machine: importing torch, starting processes, adding up."""

VERSION_S = 60.0
POLL_S = 0.25
END_S = 0.9
USAGE_EXIT = 2

_SAID, _LEVEL = "said.txt", "level.json"
_PROGRESS = re.compile(r"successful=(\d+) errored=(\d+) incomplete=(\d+) .* output_tokens/s=([\d.]+)")
_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR")


class GuideLlm:
    """Makes load with the GuideLLM that is installed as *binary*."""

    def __init__(self, binary: str = "guidellm") -> None:
        self._binary = binary

    @cached_property
    def name(self) -> str:
        """`guidellm` and its version; MeasuringError where *binary* is no GuideLLM."""
        with TemporaryDirectory(prefix="guidellm-") as folder:
            try:
                told = subprocess.run(
                    [self._binary, "--version"],
                    cwd=folder,
                    env=_environment(Path(folder)),
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=VERSION_S,
                ).stdout
            except OSError as error:
                raise MeasuringError(f"GuideLLM cannot be run as {self._binary}: {error.strerror}") from None
            except subprocess.TimeoutExpired:
                raise MeasuringError(f"{self._binary} does not tell its version") from None
        version = re.search(r"guidellm version: (\d[\w.+-]*)", told.decode(errors="replace"))
        if version is None:
            raise MeasuringError(f"{self._binary} is no GuideLLM: it does not tell its version")
        return f"guidellm {version[1]}"

    def run_level(
        self, endpoint: Endpoint, workload: Workload, load: Load, limits: Limits, watch: Watch
    ) -> Level:
        """One level; GuideLLM counts the requests that conform one by one, against the same limits.

        In an open loop GuideLLM 0.8.1 now and then plans its requests before it knows when it starts, and
        sends them all at once: such a run is not of this load, and is done again with other prompts.
        """
        target, began = checked_target(endpoint), monotonic()
        seconds = level_seconds(workload, load, limits)
        for attempt in range(ATTEMPTS):
            other = replace(workload, seed=workload.seed + attempt * SEED_STEP)
            level = self._attempt(endpoint, target, other, load, limits, watch, began)
            if level.delay_p95_s is None or level.delay_p95_s <= seconds:
                return level
        raise MeasuringError(f"{self.name} sent all requests at once in {ATTEMPTS} runs, not as planned")

    def _attempt(
        self,
        endpoint: Endpoint,
        target: Target,
        workload: Workload,
        load: Load,
        limits: Limits,
        watch: Watch,
        began: float,
    ) -> Level:
        name, seconds = self.name, level_seconds(workload, load, limits)
        with TemporaryDirectory(prefix="guidellm-") as created:
            folder = Path(created)

            def go_on() -> None:
                if not watch(_progress(folder / _SAID, monotonic() - began)):
                    raise Stopped

            (folder / _SAID).touch()
            _write_prompts(folder / PROMPTS, workload, most_requests(workload, load, limits, seconds), go_on)
            with open(folder / _LEVEL, "w", opener=_private, encoding="utf-8") as file:
                json.dump({"spec": scenario(endpoint, target, workload, load, limits, seconds)}, file)
            code = self._run(folder, seconds + AROUND_S, go_on)
            if not (folder / REPORT).is_file():
                why = _last_words(folder / _SAID, endpoint.key)
                known = f", these settings are for {KNOWN_VERSION}" if code == USAGE_EXIT else ""
                raise MeasuringError(f"{name} ended with code {code} and no report{known}: {why}")
            return read_report(folder / REPORT, load)

    def _run(self, folder: Path, most_s: float, go_on: Callable[[], None]) -> int:
        """Run the command in its folder and give its exit code; `go_on` raises Stopped to end it."""
        command = [sys.executable, "-I", leash.__file__, self._binary]
        command += ["run", "-c", _LEVEL, "--disable-console"]
        with (folder / _SAID).open("wb") as said:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=_environment(folder),
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = monotonic() + most_s
        try:
            while process.poll() is None:
                if monotonic() > deadline:
                    raise MeasuringError(f"{self.name} did not end within {most_s:.0f} s")
                go_on()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_S)
            return process.returncode
        finally:
            _end(process)


def _write_prompts(path: Path, workload: Workload, count: int, go_on: Callable[[], None]) -> None:
    prompts = Prompts(workload.seed, round(workload.input_tokens * workload.words_per_token))
    asked = monotonic()
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            file.write(json.dumps({"prompt": prompts.text(number)}) + "\n")
            if monotonic() - asked > POLL_S:
                go_on()
                asked = monotonic()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let the leash go, which ends the program, and make sure that nothing of its group stays."""
    assert process.stdin is not None
    process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _environment(folder: Path) -> dict[str, str]:
    """What GuideLLM may know: none of our secrets, no proxy, no hub, one process that sends."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return kept | {
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "GUIDELLM__MAX_WORKER_PROCESSES": "1",
    }


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _progress(said: Path, seconds: float) -> Progress:
    """How far it is: GuideLLM tells every ten seconds."""
    told = _PROGRESS.findall(_tail(said))
    if not told:
        return Progress(seconds)
    completed, failed, cut, tok_per_sec = told[-1]
    sent = int(completed) + int(failed) + int(cut)
    return Progress(seconds, sent, int(completed), int(failed), float(tok_per_sec))


def _last_words(said: Path, key: str) -> str:
    """The last line that it said, without what does not belong into a message."""
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", _tail(said))
    if key:
        text = text.replace(key, "***")
    lines = ["".join(filter(str.isprintable, line)).strip() for line in text.splitlines()]
    return next((line[-300:] for line in reversed(lines) if line), "it said nothing")


def _tail(path: Path, most: int = 8192) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - most))
        return file.read().decode(errors="replace")
