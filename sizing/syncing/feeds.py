"""The threads of a run, and the cluster as they have told it so far."""

from __future__ import annotations

import logging
import time
from datetime import datetime

from django.utils import timezone

from sizing.inventory.kubernetes.facts import Listing
from sizing.syncing import parts
from sizing.syncing.client import CONNECTING, Cluster, connect
from sizing.syncing.failures import SyncFailure
from sizing.syncing.kinds import Resource
from sizing.syncing.timing import Timing
from sizing.syncing.watching import Connected, Connector, Ended, Event, Feed, Listed, Message, Messages

log = logging.getLogger(__name__)

NOT_THERE = (403, 404, 405)
"""Statuses by which a kind is not to be had, now or later."""

MOST_MESSAGES = 1_000
"""So many are taken before the run looks at anything else."""


class Feeds:
    """Connects, keeps a feed of each kind running, and gathers what they tell.

    After a failure all that is to be started again waits for the same pause, and then for a fresh
    connection: with the configuration and the token as they are then.
    """

    def __init__(self, timing: Timing) -> None:
        self.timing = timing
        self.messages = Messages()
        self.changed_at: float | None = None
        self.brought = False
        self.relists = 0
        self.events = 0
        self.server = ""
        self._cluster: Cluster | None = None
        self._connector: Connector | None = None
        self._begin()

    def _begin(self) -> None:
        self.begun_at = timezone.now()
        self._resources: dict[str, Resource] | None = None
        self._feeds: dict[str, Feed] = {}
        self._parts: dict[str, Listing] = {}
        self._versions: dict[str, str | None] = {}
        self._heard: dict[str, datetime] = {}
        self._listed: dict[str, datetime] = {}
        self._to_start: set[str] = set()
        self._troubles: set[str] = set()
        self._warnings: list[str] = []
        self._start_at = 0.0

    def start_over(self) -> None:
        """List everything anew."""
        self.stop()
        self._cluster = None
        self._begin()
        self.brought = False
        self.changed_at = None

    def stop(self) -> None:
        """End all threads; what they still tell is not heard."""
        for teller in (self._connector, *self._feeds.values()):
            if teller is not None:
                teller.stop()
        self._connector = None

    @property
    def complete(self) -> bool:
        """Whether all kinds are listed."""
        return self._resources is not None and self._resources.keys() <= self._parts.keys()

    @property
    def work(self) -> bool:
        """Whether all is brought in and every watch has shown that it works."""
        return (
            self.brought
            and not self._troubles
            and not self._to_start
            and all(feed.settled for feed in self._feeds.values())
        )

    @property
    def listed_at(self) -> datetime:
        """When the oldest of the lists was asked for."""
        return min(self._listed.values())

    @property
    def heard_at(self) -> datetime:
        """Until when all of nodes and pods is known: the server told something, or that all is told."""
        for feed in self._feeds.values():
            self._note_heard(feed)
        return min(self._heard[name] for name, resource in self._required())

    def _note_heard(self, feed: Feed) -> None:
        name = feed.resource.plural
        if feed.heard_at is not None and name in self._heard:
            self._heard[name] = max(feed.heard_at, self._heard[name])

    def _required(self) -> list[tuple[str, Resource]]:
        return [(name, r) for name, r in (self._resources or {}).items() if r.required]

    def listing(self) -> Listing:
        """The whole cluster as it is known now."""
        return parts.merged(self._parts.values(), self._warnings)

    def pause(self, seconds: float) -> None:
        """Start nothing before this time is over."""
        self._start_at = time.monotonic() + seconds

    def step(self) -> SyncFailure | None:
        """Start what is due, and take what was told for a moment; the failure that begins a pause."""
        self._start()
        failure: SyncFailure | None = None
        seconds = self.timing.tick
        for _ in range(MOST_MESSAGES):
            message = self.messages.get(seconds)
            if message is None:
                break
            seconds = 0.0
            failure = self._take(message) or failure
        self._troubles -= {name for name, feed in self._feeds.items() if feed.settled}
        return failure

    def _start(self) -> None:
        if time.monotonic() < self._start_at:
            return
        if self._cluster is None:
            if self._connector is None:
                self._connector = Connector(self.messages, lambda: connect(self.timing))
                self._connector.start()
            return
        for name in sorted(self._to_start):
            resource = (self._resources or {})[name]
            feed = Feed(self.messages, self._cluster, resource, self._versions.get(name), self.timing)
            self._feeds[name] = feed
            feed.start()
        self._to_start.clear()

    def _take(self, message: Message) -> SyncFailure | None:
        teller = message.teller
        if isinstance(teller, Connector):
            return self._take_of_connector(teller, message)
        if not isinstance(teller, Feed) or self._feeds.get(teller.resource.plural) is not teller:
            return None  # of a thread that was ended
        name = teller.resource.plural
        match message:
            case Listed():
                self._parts[name] = message.part
                self._heard[name] = self._listed[name] = teller.asked_at
                self._change()
            case Event():
                self.events += 1
                if self._changed_by(message, self._parts[name]):
                    self._change()
            case Ended():
                return self._take_end(name, teller, message)
        return None

    def _take_of_connector(self, connector: Connector, message: Message) -> SyncFailure | None:
        if connector is not self._connector:
            return None
        self._connector = None
        self.server = connector.server or self.server
        if isinstance(message, Connected):
            self._cluster = message.cluster
            self._troubles.discard(CONNECTING)
            if self._resources is None:
                self._resources = {resource.plural: resource for resource in message.resources}
                self._to_start = set(self._resources)
                self._warnings = list(message.warnings)
            return None
        failure = message.failure if isinstance(message, Ended) else None
        return self._trouble(CONNECTING, failure) if failure else None

    @staticmethod
    def _changed_by(event: Event, part: Listing) -> bool:
        changed = parts.drop if event.gone else parts.change
        return changed(part, event.item, event.facts)

    def _change(self) -> None:
        if self.changed_at is None:
            self.changed_at = time.monotonic()

    def _take_end(self, name: str, feed: Feed, end: Ended) -> SyncFailure | None:
        del self._feeds[name]
        self._note_heard(feed)
        failure = end.failure
        self._versions[name] = None if end.expired else feed.version
        if failure is not None and failure.status in NOT_THERE and not feed.resource.required:
            self._do_without(name, failure)
            return None
        self._to_start.add(name)
        if end.expired and feed.version is not None:
            self.relists += 1
            if feed.heard_a_line or not feed.listed:
                return None  # it has watched for a while, so a fresh list will do
        elif failure is None:
            if feed.settled:
                return None
            failure = SyncFailure("the API server ended the watch at once", feed.doing)
        return self._trouble(name, failure) if failure else None

    def _trouble(self, name: str, failure: SyncFailure) -> SyncFailure | None:
        """What follows waits and then begins with a fresh connection; more of the same round adds nothing."""
        self._troubles.add(name)
        self._cluster = None
        return failure if time.monotonic() >= self._start_at else None

    def _do_without(self, name: str, failure: SyncFailure) -> None:
        """A kind that is not needed and not to be had; what was listed of it stays until the next run."""
        if self._resources is not None:
            del self._resources[name]
        self._troubles.discard(name)
        self._warnings.append(f"{name} are not read: {failure.words}")
        log.warning("%s are not read: %s", name, failure.words)
        self._change()
