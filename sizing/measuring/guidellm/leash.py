"""Runs a program that must not outlive the one who started it: `python leash.py PROGRAM [ARGUMENT...]`.

The leash is a pipe on standard input. When its other end closes, because the owner let go or was killed,
the whole process group is interrupted and, if it is still there after `GRACE_S`, killed. Start it as the
leader of a group of its own. Its exit code is the program's, 128 + the signal where one ended it.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

GRACE_S = 0.5


def main(command: list[str]) -> int:
    """Run *command* until it ends or the leash is let go."""
    try:
        program = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return 127
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only now: the program would inherit it
    ended = os.pidfd_open(program.pid)
    ready, _, _ = select.select([sys.stdin, ended], [], [])
    if ended not in ready:
        os.killpg(0, signal.SIGINT)
        select.select([ended], [], [], GRACE_S)
        os.killpg(0, signal.SIGKILL)
    code = program.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
