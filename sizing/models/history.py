"""The admin's history, written also where something changes by another way than its pages.

An entry says by which way in its message, beside what Django itself reads of it: `{"by": "API"}`. What has
no such word was done on a page.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model, Q, QuerySet
from django.utils import timezone

from sizing.models.catalog import Variant
from sizing.models.measurement import Measurement

DESK = "the desk"
"""The account that stands for the desk itself. The space keeps anybody from taking the name in a form."""

MOST = 1000
"""Above so many changed objects, only the import's or load's own entry tells of them."""

API, COMMAND, SYNC, PAGE = "API", "command", "sync", "page"

KEPT_OF_SYNC = timedelta(days=30)
"""A live sync writes day and night; its entries go after this."""

_MOST_WORDS = 20


@dataclass(frozen=True, slots=True)
class By:
    """Who changes something, and by which way. Nobody, as for a command or the sync: the desk itself."""

    way: str
    user: User | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to one object. `what` changed of it: names of fields, or words."""

    table: type[Model]
    pk: int | None
    name: str
    flag: int
    what: tuple[str, ...] = ()


def by_trigger(trigger: str, user: User | None) -> By:
    """Who and by which way, for rows that know what they were triggered by: `admin`, `api`, `command`."""
    return By({"api": API, "command": COMMAND}.get(trigger, PAGE), user)


def added(row: Model) -> Event:
    """A row that is new."""
    return Event(type(row), row.pk, name_of(row), ADDITION)


def changed(row: Model, *what: str) -> Event:
    """A row of which this changed."""
    return Event(type(row), row.pk, name_of(row), CHANGE, what)


def removed(row: Model) -> Event:
    """A row that goes; to be asked before it does."""
    return Event(type(row), row.pk, name_of(row), DELETION)


def name_of(row: Model) -> str:
    """A row by a name that tells it also once it is gone: a variant and a measurement with their model."""
    match row:
        case Variant():
            return f"{row.model.name} · {row.name}"
        case Measurement():
            return f"{row.variant.model.name} · {row.variant.name} on {row.profile.name}: {row}"
    return str(row)


def with_parts(own: Event, parts: Sequence[Event]) -> list[Event]:
    """An event and those of the object's parts; alone where they are too many to be told one by one."""
    return [own, *parts] if len(parts) < MOST else [own]


def write(by: By, events: Sequence[Event]) -> None:
    """Write one entry for each event, in the transaction of the change; nothing above `MOST` of them."""
    if not events or len(events) > MOST:
        return
    user = by.user if by.user is not None and by.user.pk else the_desk()
    types = ContentType.objects.get_for_models(*{event.table for event in events})
    LogEntry.objects.bulk_create(
        (
            LogEntry(
                user=user,
                content_type=types[event.table],
                object_id=None if event.pk is None else str(event.pk),
                object_repr=event.name[:200],
                action_flag=event.flag,
                change_message=_message(event, by.way),
            )
            for event in events
        ),
        batch_size=500,
    )


def the_desk() -> User:
    """The account for what nobody in particular does: inactive and without a password."""
    unusable = {"is_active": False, "password": make_password(None)}
    return User.objects.get_or_create(username=DESK, defaults=unusable)[0]


def drop_old_of_sync() -> None:
    """Drop what the sync wrote long ago."""
    old = LogEntry.objects.filter(user__username=DESK, action_time__lt=timezone.now() - KEPT_OF_SYNC)
    old.filter(change_message__endswith=_way(SYNC)).delete()


def newest() -> int:
    """The id of the newest entry; 0 where there is none."""
    return LogEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def since(entry: int, objects: Mapping[type[Model], Collection[int]]) -> QuerySet[LogEntry]:
    """What was written of these objects, given by table and id, after an entry; the newest first.

    A form that was saved as it was is left out: it changed nothing.
    """
    types = ContentType.objects.get_for_models(*objects)
    of = Q(pk__in=())
    for table, pks in objects.items():
        of |= Q(content_type=types[table], object_id__in=[str(pk) for pk in pks])
    nothing = Q(action_flag=CHANGE, change_message="[]")
    return LogEntry.objects.filter(of, ~nothing, pk__gt=entry).select_related("user").order_by("-pk")


def last_words(row: Model) -> str:
    """Who wrote last of an object, when and by which way, in a few words; empty where nothing tells."""
    entry = since(0, {type(row): [row.pk]}).first()
    if entry is None:
        return ""
    return f"{entry.user.get_username()} at {entry.action_time:%Y-%m-%d %H:%M:%S} UTC by {way_of(entry)}"


def way_of(entry: LogEntry) -> str:
    """By which way an entry's change came, as in `API`, `load 7`, `page`."""
    message = entry.change_message
    if not message.startswith("["):
        return PAGE
    try:
        parts: Any = json.loads(message)
    except ValueError:
        return PAGE
    return next((str(part["by"]) for part in parts if isinstance(part, dict) and "by" in part), PAGE)


def _message(event: Event, way: str) -> str:
    what: dict[str, Any]
    if event.flag == ADDITION:
        what = {"added": {}}
    elif event.flag == DELETION:
        what = {"deleted": {"name": str(event.table._meta.verbose_name), "object": event.name}}
    else:
        what = {"changed": {"fields": _few(event.what)}}
    return f"[{json.dumps(what)}, {_way(way)}"


def _way(way: str) -> str:
    """How a message ends that came by this way."""
    return f"{json.dumps({'by': way})}]"


def _few(what: Iterable[str]) -> list[str]:
    words = [word for word in what if word]
    more = len(words) - _MOST_WORDS
    return words if more <= 0 else [*words[:_MOST_WORDS], f"{more} more"]
