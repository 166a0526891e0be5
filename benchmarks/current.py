"""Readers on two hosts beside writers: is any answer older than the last write before its question?

Run: python -m benchmarks.current [--setup redis] [--seconds 60] [--readers 8]

It starts its own servers, and two desks with two web processes each: a writer asks the API of the first,
another one writes into the database itself; the readers ask both for answers, pages and measurements.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import tempfile

import django


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--setup", choices=("redis", "rabbitmq"), default="redis")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--readers", type=int, default=8)
    asked = parser.parse_args()
    for name in ("DATABASE_URL", "CELERY_BROKER_URL", "CACHE_URL", "HTTPS", "DEBUG", "KUBERNETES"):
        os.environ.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "llmgw_admin.settings",
            "DATA_DIR": folder,
            "SECRET_KEY": secrets.token_urlsafe(64),  # ours and the desks', for a session
        }
        django.setup()
        return run(asked.setup, asked.seconds, asked.readers)


def run(setup: str, seconds: float, readers: int) -> int:
    """Prints what came of it; 1 where an answer was stale or failed."""
    from benchmarks.faults.client import signed_in
    from tests.faults.rows import rows_of
    from tests.infra.desk import Desk
    from tests.services.currency import figures, watch
    from tests.services.setups import running

    with running(setup, {"WEB_WORKERS": "2", "SECRET_KEY": os.environ["SECRET_KEY"]}) as servers:
        desks = [Desk(servers.host(name)) for name in ("a", "b")]
        try:
            with rows_of(servers.host("a")):
                client, (by_api, in_database) = signed_in(), figures()
            seen = watch(
                [desk.address for desk in desks],
                {"Authorization": f"Bearer {client.token}", "Cookie": f"sessionid={client.session}"},
                servers.shared["DATABASE_URL"],
                by_api,
                in_database,
                readers=readers,
                seconds=seconds,
            )
        finally:
            for desk in desks:
                desk.stop(signal.SIGKILL)
    reads = sum(seen.reads.values())
    print(
        f"{setup}: {seconds:g} s, {readers} readers on two hosts: {seen.writes} writes, {reads} reads of "
        f"{len(seen.values)} values, {len(seen.stale)} stale, {len(seen.failed)} failed"
    )
    for line in [*seen.stale[:10], *seen.failed[:10]]:
        print(line)
    return 1 if seen.stale or seen.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
