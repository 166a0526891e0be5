"""Runs a command beside a PostgreSQL that ``DATABASE_URL`` names: ``python -m tests.postgres COMMAND...``.

The server comes from a wheel, needs no root, and ends with the command.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from tests.services.servers import Postgres


def main(command: list[str]) -> int:
    """Run *command* beside the server; its exit code is ours."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # in good order, so that the server ends too
    try:
        with Postgres() as server:
            return subprocess.run(
                command, env={**os.environ, "DATABASE_URL": server.url}, check=False
            ).returncode
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
