"""API tokens: shown once, kept as a hash."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import transaction

from sizing.inventory.words import quoted
from sizing.models import ApiToken, history
from sizing.models.fields import validate_text
from sizing.models.history import By
from sizing.services.errors import DeskError

LONGEST_LABEL = 120
MOST_DAYS = 36_500


def create_token(username: str, label: str, days: int | None = None) -> str:
    """Make a token for a user and give it, for the only time; without `days` it does not expire.

    DeskError for an unknown or inactive user, a label that says nothing, or days out of range.
    """
    _check_label(label)
    if days is not None and not 1 <= days <= MOST_DAYS:
        raise DeskError(f"days must be from 1 to {MOST_DAYS}")
    user = get_user_model().objects.filter(username=username).first()
    if user is None:
        raise DeskError(f"no user {quoted(username)}", code="not_found", status=404)
    if not user.is_active:
        raise DeskError(f"user {quoted(username)} is not active")
    expiry = None if days is None else timedelta(days=days)
    with transaction.atomic():
        row, token = ApiToken.objects.create(user=user, expiry=expiry, label=label)
        history.write(By(history.COMMAND), [history.added(row)])
    return str(token)


def _check_label(label: str) -> None:
    if not label.strip() or len(label) > LONGEST_LABEL:
        raise DeskError(f"the label must have 1 to {LONGEST_LABEL} characters")
    try:
        validate_text(label)
    except ValidationError as error:
        raise DeskError(f"the label {error.messages[0]}") from None
