"""Answers that are kept: with the question, the inventory and the measurement that they rest on, so that
each can be computed again."""

from sizing.services.answers import keeping, noting
from sizing.services.answers.noting import Asker, note
from sizing.services.answers.recorder import flush, written_by_now
from sizing.services.answers.replaying import Difference, Replay, replay

__all__ = ["Asker", "Difference", "Replay", "flush", "forget", "note", "replay", "written_by_now"]


def forget() -> None:
    """Know nothing of what is stored: for tests, each of which has a database of its own."""
    noting.forget()
    keeping.forget()
