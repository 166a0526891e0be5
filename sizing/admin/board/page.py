"""What the admin's home says."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from sizing.admin.board.ask import ask_part
from sizing.admin.board.fleet import fleet_part
from sizing.admin.board.live import EVERY_MS
from sizing.admin.board.targets import targets_part
from sizing.snapshot import pinned


def board_part(request: HttpRequest) -> dict[str, Any]:
    """The context of the home beside what every page has."""
    with pinned():
        halves = fleet_part(request) | targets_part(request)
    return {"live_every_ms": EVERY_MS, **ask_part(request), **halves}
