"""A message queue in a folder, for a desk on one machine.

Kombu's own filesystem transport lists messages that are still being written, and then loses them. Here a
message appears under its name only when it is whole, one reader takes it by renaming it, and names begin
with the time, so that what came first goes first. Bindings stay in each process, which declares its own:
there is no fanout, so Celery's remote control, gossip and mingle are off with it.
"""

import os
import time
import uuid
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import virtual
from kombu.utils.json import dumps, loads


class Channel(virtual.Channel):
    """One folder for all queues; the option ``folder`` names it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._listed: dict[str, list[str]] = {}  # what was seen, the oldest last: a long queue is read once

    @property
    def transport_options(self) -> dict[str, Any]:
        options: dict[str, Any] = self.connection.client.transport_options  # type: ignore[union-attr, assignment]
        return options

    @property
    def _folder(self) -> Path:
        return Path(self.transport_options["folder"])

    def _put(self, queue: str, message: Any, **kwargs: Any) -> None:
        name = f"{time.time_ns()}_{uuid.uuid4().hex}.{queue}.msg"
        draft = self._folder / f"{name}.draft"
        self._folder.mkdir(mode=0o700, exist_ok=True)  # somebody may have cleared it away
        try:
            draft.write_text(dumps(message), encoding="utf-8")
            draft.rename(self._folder / name)
        except OSError:  # a full disk, which what is left of it would keep full
            draft.unlink(missing_ok=True)
            raise

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        names = self._listed.setdefault(queue, [])
        while names or (names := self._list(queue)):
            name = names.pop()
            claimed = self._folder / f"{name}.claimed"
            try:
                (self._folder / name).rename(claimed)
                text = claimed.read_text(encoding="utf-8")
                claimed.unlink()
            except FileNotFoundError:  # another reader was faster, or somebody emptied the folder
                continue
            return loads(text)
        raise Empty

    def _list(self, queue: str) -> list[str]:
        self._listed[queue] = sorted(self._waiting(queue), reverse=True)
        return self._listed[queue]

    def _size(self, queue: str) -> int:
        return len(self._waiting(queue))

    def _purge(self, queue: str) -> int:
        names = self._waiting(queue)
        for name in names:
            with suppress(FileNotFoundError):
                (self._folder / name).unlink()
        return len(names)

    def _waiting(self, queue: str) -> list[str]:
        """The names of whole messages that nobody has taken; a draft or a claim ends otherwise."""
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return []
        return [name for name in names if name.partition(".")[2] == f"{queue}.msg"]


class Transport(virtual.Transport):
    """Selected by the setting ``broker_transport``."""

    Channel = Channel
    driver_type = driver_name = "files"
    implements = virtual.Transport.implements.extend(asynchronous=True)
    global_state = virtual.BrokerState()  # what is declared once stays declared after a reconnect

    def __init__(self, client: Any, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        self.state = self.global_state

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        """Look for messages again and again, in a worker's event loop.

        Without such a loop all processes of a worker wait at one lock, which one that is killed there takes
        with it: none of the others, and none that comes after it, gets any work.
        """
        loop.call_repeatedly(self.polling_interval, self._deliver_waiting)

    def _deliver_waiting(self) -> None:
        with suppress(Empty):
            while True:
                self.cycle.get(self._deliver)  # type: ignore[union-attr]

    def driver_version(self) -> str:
        return "1"
