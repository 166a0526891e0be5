"""One of several processes that do the same at once: ``python -m tests.faults.racing WHAT [PK]``.

It says that it is ready, begins when a line comes on stdin, and prints as JSON what it got.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import django

from sizing.supervisor import end_with

ROOT = Path(__file__).resolve().parents[2]


def together(processes: int, environment: dict[str, str], *what: str) -> list[Any]:
    """Let so many processes begin at once; what each of them got. RACER tells each its number."""
    command = [sys.executable, "-m", "tests.faults.racing", *what]
    values = environment | {"DJANGO_SETTINGS_MODULE": "llmgw_admin.settings"}
    running = [
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=values | {"RACER": str(number)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=end_with(os.getpid()),
        )
        for number in range(processes)
    ]
    try:
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in running:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        return [json.loads(process.communicate(timeout=60)[0]) for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()


def claim() -> list[int]:
    """Take and finish queued refreshes until none is left; those taken here."""
    from sizing.measuring import refreshes
    from sizing.models import MeasuredNode

    taken = []
    while waiting := refreshes.waiting():
        for pk in waiting:
            if found := refreshes.claim(pk):
                on = MeasuredNode.objects.filter(node__gpus__placements__replica=found.replica)
                assert list(on.values_list("refresh", flat=True)) == [pk]
                assert refreshes.finish(found)
                taken.append(pk)
    return taken


def due() -> list[int]:
    """Ask for what is due; it is over at once, so that an active refresh does not keep another one away."""
    from sizing.measuring import schedule
    from sizing.models import Refresh

    made = schedule.request_due()
    Refresh.objects.filter(pk__in=made).update(state=Refresh.State.DONE)
    return made


def migrate() -> None:
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def measure(pk: int) -> bool:
    from sizing.measuring import running

    return running.run(pk)


def all_at_once() -> dict[str, int]:
    from tests.faults import writing

    return writing.all_at_once()


def counting() -> dict[str, int]:
    from tests.faults import writing

    return writing.counting()


def main(arguments: Sequence[str]) -> None:
    django.setup()
    print("ready", flush=True)
    sys.stdin.readline()
    what, *numbers = arguments
    known: dict[str, Callable[..., Any]] = {
        "migrate": migrate,
        "claim": claim,
        "due": due,
        "measure": measure,
        "all at once": all_at_once,
        "counting": counting,
    }
    print(json.dumps(known[what](*map(int, numbers))))


if __name__ == "__main__":
    main(sys.argv[1:])
