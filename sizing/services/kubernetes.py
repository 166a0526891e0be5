"""The cluster's list as people and scripts bring it: read, looked at, brought in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO

from sizing.inventory.kubernetes.counting import count
from sizing.inventory.kubernetes.facts import Listing
from sizing.inventory.kubernetes.reading import read_listing
from sizing.inventory.kubernetes.report import report as report_of
from sizing.inventory.yaml_reading import UnreadableError
from sizing.services.errors import DeskError
from sizing.syncing import bringing, state
from sizing.syncing.bringing import ConflictError, Outcome, RefusedError

__all__ = ["Outcome", "bring", "check_not_followed", "consider", "read", "report"]


def read(source: bytes | BinaryIO, progress: Callable[[float], None] | None = None) -> Listing:
    """Read what `kubectl get nodes,pods,… -A -o json` prints. Raises `DeskError`.

    `progress` is called with the share of the file that is read, 0 to 1.
    """
    try:
        return read_listing(source, progress)
    except UnreadableError as error:
        raise DeskError(str(error)) from None


def report(listing: Listing) -> dict[str, Any]:
    """The cluster as the list tells it. Needs no database."""
    return report_of(count(listing))


def consider(listing: Listing, *, partial: bool = False) -> Outcome:
    """What bringing in the list would change, and why it would be refused. Nothing is written."""
    outcome = bringing.consider(listing, partial=partial)
    outcome.refusals += state.refusals()
    return outcome


def check_not_followed() -> None:
    """Raises `DeskError` (409) where the desk follows a cluster: the sync would undo what a list brings."""
    refused = state.refusals()
    if refused:
        raise DeskError(f"{refused[0]}; nothing was changed", code="conflict", status=409)


def bring(listing: Listing, *, partial: bool = False) -> Outcome:
    """Bring in the list, all of it or nothing. Raises `DeskError` where it is refused.

    That is always so while the desk follows a cluster, whose own list counts.
    """
    check_not_followed()
    try:
        return bringing.bring(listing, partial=partial)
    except ConflictError as error:
        raise DeskError(str(error), code="conflict", status=409) from None
    except RefusedError as error:
        message = str(error)
        hint = "" if partial or "nothing was changed" in message else "; nothing was changed"
        raise DeskError(message + hint) from None
