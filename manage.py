#!/usr/bin/env python3
"""The desk's command line."""

import os
import sys


def main() -> None:
    """Run one command; what goes wrong with the database is said in one line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llmgw_admin.settings")
    try:
        from django.core.management import execute_from_command_line
        from django.db import DatabaseError, InterfaceError
    except ImportError:
        sys.exit("Django is not installed; run script/demo, or pip install -r requirements.txt")
    try:
        execute_from_command_line(sys.argv)
    except (DatabaseError, InterfaceError) as error:
        if "--traceback" in sys.argv:
            raise
        print(f"the database cannot be used: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
