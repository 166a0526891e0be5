"""Faults of a running desk: what is lost, what is doubled, how late.

Run: python -m benchmarks.faults [--setup files] [--fault kill] [--step queued] [--victim web] [--runs 1]

It starts its own servers (PostgreSQL of a wheel, Redis and RabbitMQ of the machine) and desks on free ports.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile

import django

SETUPS = ("files", "redis", "rabbitmq")
FAULTS = ("kill", "gone", "disk", "clock", "hosts")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--setup", choices=SETUPS, action="append", help="default: all")
    parser.add_argument("--fault", choices=FAULTS, action="append", help="default: all")
    parser.add_argument("--step", action="append", help="of a kill; default: all")
    parser.add_argument("--victim", action="append", help="of a kill or an outage; default: all")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--gone", type=float, default=60.0, help="seconds that a server is away")
    asked = parser.parse_args()
    asked.setup = asked.setup or SETUPS
    asked.fault = asked.fault or FAULTS

    with tempfile.TemporaryDirectory(prefix="faults-") as scratch:
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "llmgw_admin.settings",
            "DATA_DIR": scratch,
            "SECRET_KEY": secrets.token_urlsafe(64),  # ours and the desks', for sessions
        }
        for name in ("DATABASE_URL", "CELERY_BROKER_URL", "CACHE_URL", "HTTPS", "DEBUG", "KUBERNETES"):
            os.environ.pop(name, None)
        django.setup()
        from benchmarks.faults.table import table  # here: it needs the models

        return table(asked)


if __name__ == "__main__":
    sys.exit(main())
