"""A run of the sync: all is listed, then watched, and what changes is brought in, for some minutes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection
from django.utils import timezone

from sizing.inventory.kubernetes.facts import Listing
from sizing.models import InventoryChange, history
from sizing.models.history import By
from sizing.syncing import bringing, state
from sizing.syncing.bringing import Outcome, RefusedError
from sizing.syncing.failures import SyncFailure
from sizing.syncing.feeds import Feeds
from sizing.syncing.state import Claim, Lost
from sizing.syncing.stopping import stopping
from sizing.syncing.timing import IN_PRODUCTION, Timing
from sizing.syncing.told import changes_told, number_of_changes, report_told

log = logging.getLogger(__name__)

WRITING = "writing"
BROKE_OFF = "the sync broke off; the worker's log tells why"
TOO_LONG = "the time limit of a task ended the sync"


BROUGHT = (InventoryChange.Kind.NODE, InventoryChange.Kind.REPLICA, InventoryChange.Kind.ALL)
"""Changes to what a cluster tells."""


class Bring(Protocol):
    """`bringing.bring`, as a run calls it."""

    def __call__(
        self,
        listing: Listing,
        *,
        live: bool,
        guard: Callable[[], None],
        after: Callable[[Outcome], None],
    ) -> Outcome: ...


def run(
    *,
    bring: Bring = bringing.bring,
    timing: Timing = IN_PRODUCTION,
    stopped: Callable[[], bool] = stopping.is_set,
) -> bool:
    """Follow the cluster for some minutes, or until it is stopped. False: it was not this worker's to do."""
    if not settings.KUBERNETES.on or stopped():
        return False
    claim = state.claim(timing.lease)
    if claim is None:
        return False
    state.mark_stale()
    history.drop_old_of_sync()
    this = _Run(claim, bring, timing)
    error = BROKE_OFF
    try:
        this.follow(stopped)
        error = ""
    except Lost:
        log.warning("the sync is in other hands; this run of it ends")
        error = ""
    except SoftTimeLimitExceeded:
        error = TOO_LONG
    finally:
        this.feeds.stop()
        if error:
            with suppress(DatabaseError, Lost):
                state.failed(claim, SyncFailure(error, "running"), this.failures + 1)
        else:
            with suppress(DatabaseError):
                state.release(claim)
    return True


class _Run:
    def __init__(self, claim: Claim, bring: Bring, timing: Timing) -> None:
        self.claim = claim
        self.timing = timing
        self.feeds = Feeds(timing)
        self.failures = claim.failures
        self._bring = bring
        self._writing_failed = False
        self._written: int | None = None
        self._not_before = 0.0
        self._beat_at = self._look_at = time.monotonic()

    def follow(self, stopped: Callable[[], bool]) -> None:
        over = time.monotonic() + self.timing.run
        while not stopped():
            if time.monotonic() >= over:
                self._end()
                return
            failure = self.feeds.step()
            if failure is not None:
                self.feeds.pause(self._failed(failure))
            self._bring_in()
            self._see_that_all_works()
            if time.monotonic() >= self._look_at:
                self._look_at = time.monotonic() + self.timing.look
                self._write(self._look)

    def _bring_in(self) -> None:
        feeds, now = self.feeds, time.monotonic()
        if not feeds.complete or feeds.changed_at is None or now < self._not_before:
            return
        if feeds.brought and now < feeds.changed_at + self.timing.debounce:
            return
        listing, feeds.changed_at = feeds.listing(), None
        self._write(self._beat)  # it may take a while
        try:
            outcome = self._bring(
                listing, live=True, guard=lambda: state.guard(self.claim), after=self._remember
            )
        except RefusedError as error:
            self._not_written(str(error))
        except DatabaseError as error:
            log.warning("what the cluster tells could not be written: %s", error)
            connection.close()
            self._not_written("the database could not take it; the worker's log tells why")
        else:
            feeds.brought = True
            self._writing_failed = False
            self._not_before = time.monotonic() + 2 * (time.monotonic() - now)
            self._write(lambda: self._tell_brought(listing, outcome))

    def _not_written(self, words: str) -> None:
        self.feeds.changed_at = time.monotonic()
        self._writing_failed = True
        self._not_before = time.monotonic() + self._failed(SyncFailure(words, WRITING))

    def _tell_brought(self, listing: Listing, outcome: Outcome) -> None:
        changes = changes_told(outcome.changes)
        fields = {"changes": changes, "changed_at": timezone.now()} if number_of_changes(changes) else {}
        state.write(
            self.claim,
            nodes=len(listing.nodes),
            pods=len(listing.pods),
            report=report_told(outcome),
            listed_at=self.feeds.listed_at,
            **fields,
        )
        if not self.failures:
            state.write(self.claim, state=state.State.WATCHING)
        self._beat()

    def _see_that_all_works(self) -> None:
        """A failure is over once all kinds are watched and the last change is written."""
        if self.failures and not self._writing_failed and self.feeds.work:
            self.failures = 0
            self._write(lambda: state.write(self.claim, **state.CLEAR))
            self._write(self._beat)

    def _look(self) -> None:
        requested = state.requested_at(self.claim)
        if requested is not None and requested > self.feeds.begun_at:
            self.feeds.start_over()
            if not self.failures:
                state.write(self.claim, state=state.State.LISTING)
        elif self._others_wrote():
            self.feeds.changed_at = time.monotonic()
        if time.monotonic() >= self._beat_at:
            self._beat()

    def _remember(self, outcome: Outcome) -> None:
        """In the transaction that brings in: who changed what, and that all later changes are others'."""
        history.write(By(history.SYNC), outcome.events)
        newest = InventoryChange.objects.order_by("-id").values_list("id", flat=True).first()
        self._written = newest or 0

    def _others_wrote(self) -> bool:
        """Whether somebody else changed nodes or replicas since this run did: the cluster's state comes back.

        While it fails that waits, for what was told last may be old.
        """
        feeds = self.feeds
        if self._written is None or self.failures or not feeds.brought or feeds.changed_at is not None:
            return False
        return InventoryChange.objects.filter(id__gt=self._written, kind__in=BROUGHT).exists()

    def _beat(self) -> None:
        self._beat_at = time.monotonic() + self.timing.beat
        fields: dict[str, object] = {"relists": self.feeds.relists, "events": self.feeds.events}
        if self.feeds.server:
            fields["server"] = self.feeds.server[:500]
        if self.feeds.brought and not self._writing_failed:
            fields["seen_at"] = self.feeds.heard_at
        state.beat(self.claim, self.timing.lease, **fields)

    def _failed(self, failure: SyncFailure) -> float:
        """Tell a failure; how long to wait now."""
        self.failures += 1
        pause = self.timing.pause(self.failures)
        log.warning("the cluster sync failed %s: %s", failure.doing, failure.words)
        self._write(lambda: state.failed(self.claim, failure, self.failures))
        self._write(self._beat)
        return pause

    def _write(self, step: Callable[[], None]) -> None:
        """While the database is away the run goes on, for as long as its lease."""
        try:
            step()
        except DatabaseError as error:
            log.warning("the state of the cluster sync could not be written: %s", error)
            connection.close()

    def _end(self) -> None:
        if not self.feeds.complete and not self.failures:
            words = f"not all of the cluster was listed within {self.timing.run:g} s"
            self._failed(SyncFailure(words, "listing"))
