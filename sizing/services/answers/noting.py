"""Noting an answer that somebody was given; the same question with the same result is a poll, noted once."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import MAX_EMAX, MIN_EMIN, Context
from threading import Lock
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import DatabaseError

from sizing.domain.answer import Answer as DomainAnswer
from sizing.domain.catalog import Question
from sizing.models import Answer
from sizing.models.answer import LONGEST_NUMBER
from sizing.services.answers import recorder
from sizing.services.answers.document import Inventory
from sizing.services.answers.recorder import Job
from sizing.snapshot import Revision, Snapshot

VICTIMS_KEPT = 1000
"""Of more victims than that the first are kept one by one, the others in numbers by model."""

POLLED_FOR = timedelta(days=1)
"""After so long the same answer is noted anew: else what is still asked would go with its first time."""

_MOST = 4096

_EXACT = Context(prec=LONGEST_NUMBER, Emin=MIN_EMIN, Emax=MAX_EMAX)


@dataclass(frozen=True)
class Asker:
    """By which way an answer is asked, and who asks; None: a command, which has no account."""

    channel: Answer.Channel
    user: User | AnonymousUser | None = None

    @property
    def pk(self) -> int | None:
        """The id of the account."""
        return self.user.pk if self.user else None


@dataclass(frozen=True, slots=True)
class _Noted:
    """What was noted last for an asker and a question: what its result depends on, and what it is."""

    revision: Revision | None
    warnings: Sequence[str]
    id: uuid.UUID
    digest: str
    asked_at: datetime


_noted: dict[tuple[str, int | None, Question], _Noted] = {}
_lock = Lock()


def note(answer: DomainAnswer, snapshot: Snapshot, asker: Asker, now: datetime) -> uuid.UUID | None:
    """Have an answer stored that was found on this snapshot, and tell its id; None where none are kept.

    What is asked again by the same asker, with the result that was stored last, is the answer of that id.
    At the same revision that is known without a query. Storing is the recorder's business: it costs the
    answer neither time nor success.
    """
    if not settings.ANSWERS_KEPT_DAYS:
        return None
    key = (str(asker.channel), asker.pk, answer.question)
    warnings = answer.warnings(now)
    last = _noted.get(key)
    same = last is not None and last.revision == snapshot.revision and last.warnings == warnings
    if last is not None and same and snapshot.revision and now - last.asked_at < POLLED_FOR:
        return last.id
    result = form_of(answer, now)
    digest = _digest(result)
    asked_key = _digest([key[0], key[1], _meant(answer.question)])
    # What is written by then is found by the query; what is neither there nor waiting is gone.
    newest = last if last is not None and recorder.waits(last.id) else _newest(asked_key)
    poll = newest is not None and newest.digest == digest and now - newest.asked_at < POLLED_FOR
    pk, asked_at = (newest.id, newest.asked_at) if newest and poll else (uuid.uuid4(), now)
    with _lock:
        _noted.pop(key, None)
        while len(_noted) >= _MOST:
            _noted.pop(next(iter(_noted)))
        _noted[key] = _Noted(snapshot.revision, warnings, pk, digest, asked_at)
    if not poll:
        recorder.put(_job(answer, snapshot, asker, now, pk=pk, result=result, digest=digest, key=asked_key))
    return pk


def form_of(answer: DomainAnswer, now: datetime) -> dict[str, Any]:
    """The public form of an answer without its age, as it is kept and compared."""
    form = answer.as_dict(now, victims=VICTIMS_KEPT)
    del form["measurement"]["age_s"]
    return form


def forget() -> None:
    """Know nothing of what was noted."""
    with _lock:
        _noted.clear()


def _newest(asked_key: str) -> _Noted | None:
    """What was stored last for an asker and a question, by any process."""
    rows = Answer.objects.filter(asked_key=asked_key).order_by("-asked_at")
    try:
        row = rows.values_list("id", "digest", "asked_at").first()
    except DatabaseError:
        return None  # the recorder says so where it lasts
    return _Noted(None, (), *row) if row else None


def _job(
    answer: DomainAnswer,
    snapshot: Snapshot,
    asker: Asker,
    now: datetime,
    *,
    pk: uuid.UUID,
    result: dict[str, Any],
    digest: str,
    key: str,
) -> Job:
    measured = answer.count.measurement
    revision = snapshot.revision
    row = Answer(
        id=pk,
        asked_at=now,
        channel=asker.channel,
        asked_by_id=asker.pk,
        asked_by_name=asker.user.get_username() if asker.user else "",
        **_told(answer.question),
        asked_key=key,
        revision=revision[0] if revision else None,
        nonce=revision[1] if revision else None,
        measurement_id=measured.order,
        measured={
            "model": measured.model,
            "variant": measured.variant,
            "profile": measured.profile,
            "tok_per_sec": str(measured.tok_per_sec),
            "measured_at": measured.measured_at.isoformat(),
            "source": measured.source,
            "bound": measured.bound,
            "engine": measured.engine,
        },
        fits=answer.fits,
        result=result,
        digest=digest,
    )
    # Not the snapshot itself: what waits must keep no arrays of a large fleet.
    return Job(row, revision, Inventory.of(snapshot.catalog, snapshot.fleet))


def _told(question: Question) -> dict[str, Any]:
    """A question as its columns have it."""
    return {
        "model": question.model,
        "profile": question.profile or "",
        "variant": question.variant or "",
        "tokens_per_sec": str(question.tokens_per_sec),
        "utilization": str(question.utilization),
        "as_if": list(question.as_if),
    }


def _meant(question: Question) -> dict[str, Any]:
    """A question alike for all spellings of its numbers: 1, 1.0 and 1e0."""
    numbers = ("tokens_per_sec", "utilization")
    return _told(question) | {name: str(getattr(question, name).normalize(_EXACT)) for name in numbers}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
