"""Threads that talk to the cluster and tell the run what they hear; none of them touches the database."""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone
from urllib3.response import HTTPResponse

from sizing.inventory.kubernetes import objects
from sizing.inventory.kubernetes.facts import Listing
from sizing.syncing import kinds
from sizing.syncing.client import CONNECTING, Cluster, telling
from sizing.syncing.failures import SyncFailure, one_line
from sizing.syncing.kinds import Resource
from sizing.syncing.listing import GONE, list_all, named
from sizing.syncing.timing import Timing

log = logging.getLogger(__name__)

MOST_WAITING = 2_000
"""Messages that wait for the run; then its threads wait, and with them the API server."""

LONGEST_LINE = 16 * 1024 * 1024
BROKE_OFF = "the reading broke off; the worker's log tells why"


@dataclass(frozen=True, slots=True)
class Connected:
    """The API server answers, and has these resources."""

    teller: Teller
    cluster: Cluster
    resources: list[Resource]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class Listed:
    """A whole list of a feed's kind."""

    teller: Teller
    part: Listing


@dataclass(frozen=True, slots=True)
class Event:
    """An object of a feed's kind was added or changed, or is gone."""

    teller: Teller
    item: dict[str, Any]
    facts: Listing
    gone: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """The thread is at its end, without a failure as the server ends watches; `expired`: a list is needed."""

    teller: Teller
    failure: SyncFailure | None = None
    expired: bool = False


Message = Connected | Listed | Event | Ended


class Messages:
    """What the threads tell the run, in order."""

    def __init__(self) -> None:
        self._queue: queue.Queue[Message] = queue.Queue(MOST_WAITING)

    def put(self, message: Message, stopped: Callable[[], bool]) -> None:
        """Waits for room, until nobody wants to hear of it any more."""
        while not stopped():
            with suppress(queue.Full):
                return self._queue.put(message, timeout=0.5)

    def get(self, seconds: float) -> Message | None:
        with suppress(queue.Empty):
            return self._queue.get(timeout=seconds) if seconds > 0 else self._queue.get_nowait()
        return None


class Teller(threading.Thread):
    """A thread that does its work and tells its end, whatever it is."""

    doing = ""

    def __init__(self, messages: Messages, name: str) -> None:
        super().__init__(name=f"sync {name}", daemon=True)
        self.messages = messages
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Ask it to end. What it tells from now on is not heard."""
        self._stopped.set()

    def tell(self, message: Message) -> None:
        self.messages.put(message, self._stopped.is_set)

    def work(self) -> Ended | None:
        raise NotImplementedError

    def run(self) -> None:
        try:
            ended = self.work()
        except SyncFailure as failure:
            ended = Ended(self, failure, expired=failure.status == GONE)
        except Exception:
            log.exception("%s broke off", self.name)
            ended = Ended(self, SyncFailure(BROKE_OFF, self.doing))
        if ended is not None:
            self.tell(ended)


class Connector(Teller):
    """Reads the configuration, and asks the API server what it has."""

    doing = CONNECTING

    def __init__(self, messages: Messages, connect: Callable[[], Cluster]) -> None:
        super().__init__(messages, CONNECTING)
        self._connect = connect
        self.server = ""

    def work(self) -> None:
        cluster = self._connect()
        self.server = cluster.server
        resources, warnings = kinds.find(cluster)
        if not cluster.verified:
            warnings.append("the API server's certificate is not verified: insecure-skip-tls-verify is set")
        self.tell(Connected(self, cluster, resources, warnings))


class Feed(Teller):
    """One kind of objects: listed where no version is known, then watched until the stream ends.

    `version` is that of the last thing told. `heard_at` is until when the server has told all.
    """

    def __init__(
        self, messages: Messages, cluster: Cluster, resource: Resource, version: str | None, timing: Timing
    ) -> None:
        super().__init__(messages, resource.plural)
        self.cluster = cluster
        self.resource = resource
        self.version = version
        self.timing = timing
        self.doing = f"watching {resource.plural}"
        self.asked_at = timezone.now()
        self.heard_at: datetime | None = None
        self.heard_a_line = False
        self.listed = False
        self._opened_at: float | None = None
        self._response: HTTPResponse | None = None

    @property
    def settled(self) -> bool:
        """Whether the watch has shown that it works."""
        lasted = time.monotonic() - self._opened_at if self._opened_at is not None else 0.0
        return self.heard_a_line or lasted >= self.timing.settle

    def stop(self) -> None:
        super().stop()
        response = self._response
        if response is not None:
            with suppress(OSError, ValueError, RuntimeError):  # it may be at its end in this moment
                response.shutdown()

    def work(self) -> Ended:
        if self.version is None:
            self.asked_at = timezone.now()
            part, self.version = list_all(self.cluster, self.resource, self.timing, self._stopped)
            self.listed = True
            self.tell(Listed(self, part))
            self.heard_at = self.asked_at
        for line in self._lines():
            self._take(line)
        if self.settled:
            self.heard_at = timezone.now()  # it has told all there was to tell
        return Ended(self)

    def _lines(self) -> Iterator[bytes]:
        query = {
            "watch": "true",
            "resourceVersion": self.version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": self.timing.watch,
        }
        accept = self.resource.accept("PartialObjectMetadata")
        response = self.cluster.open(self.resource.path, query, self.doing, accept)
        self._response = response
        self._opened_at = time.monotonic()
        rest = b""
        try:
            with telling(self.doing):
                for chunk in response.stream(amt=None, decode_content=False):
                    if self._stopped.is_set():
                        return
                    *lines, rest = (rest + chunk).split(b"\n")
                    yield from lines
                    if len(rest) > LONGEST_LINE:
                        raise SyncFailure("a line of the watch has no end", self.doing)
        finally:
            response.close()
        if rest.strip():
            raise SyncFailure("the watch broke off in the middle of a line", self.doing)

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            event = json.loads(line)
            what, item = event["type"], event["object"]
            metadata = item.get("metadata") or {}
        except (ValueError, TypeError, KeyError, AttributeError):
            raise SyncFailure("a line of the watch is not an event in JSON", self.doing) from None
        if what == "ERROR":
            raise _failure_of(item, self.doing, self.cluster.secrets)
        self.heard_at = timezone.now()
        self.heard_a_line = True
        if what in ("ADDED", "MODIFIED", "DELETED"):
            facts = Listing()
            objects.add(facts, named(item, self.resource))
            self.tell(Event(self, item, facts, gone=what == "DELETED"))
        version = metadata.get("resourceVersion")
        if isinstance(version, str) and version:
            self.version = version


def _failure_of(status: dict[str, Any], doing: str, secrets: Collection[str]) -> SyncFailure:
    """What an ERROR event says, which holds a Status."""
    message, code = status.get("message"), status.get("code")
    words = one_line(message, secrets) if isinstance(message, str) and message else "no reason is told"
    if status.get("reason") in ("Expired", "Gone"):
        code = GONE
    return SyncFailure(f"the watch ended with an error: {words}", doing, code if isinstance(code, int) else 0)
