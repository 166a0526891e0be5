"""API tokens: shown once, kept as a hash, revoked and still seen."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from knox.settings import CONSTANTS

from sizing.inventory.words import quoted
from sizing.models import ApiToken, history
from sizing.models.fields import validate_text
from sizing.models.history import By
from sizing.services.errors import DeskError

LONGEST_LABEL = 120
MOST_DAYS = 36_500
FEWEST_SIGNS = 10
"""Of the beginning of a token that is to be revoked; its first six are those of all tokens."""


def create_token(username: str, label: str, days: int | None = None, *, read_only: bool = False) -> str:
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
    scope = ApiToken.Scope.READ if read_only else ApiToken.Scope.FULL
    with transaction.atomic():
        row, token = ApiToken.objects.create(user=user, expiry=expiry, label=label, scope=scope)
        history.write(By(history.COMMAND), [history.added(row)])
    return str(token)


def find_token(beginning: str) -> ApiToken:
    """The token that begins so, as the list of tokens shows it; the whole token does as well.

    DeskError where there is none, or more than one.
    """
    key = beginning.strip().rstrip("…")[: CONSTANTS.TOKEN_KEY_LENGTH]
    if len(key) < FEWEST_SIGNS or not key.isprintable():
        raise DeskError(f"give at least the first {FEWEST_SIGNS} signs of the token")
    found: list[ApiToken] = list(ApiToken.objects.filter(token_key__startswith=key).order_by("created")[:2])
    if not found:
        raise DeskError(f"no token begins with {quoted(key)}", code="not_found", status=404)
    if len(found) > 1:
        raise DeskError(f"more than one token begins with {quoted(key)}; give more of it")
    return found[0]


def tokens_of(username: str) -> list[ApiToken]:
    """The tokens of a user that still let somebody in. DeskError for an unknown user."""
    user = get_user_model().objects.filter(username=username).first()
    if user is None:
        raise DeskError(f"no user {quoted(username)}", code="not_found", status=404)
    return [token for token in ApiToken.objects.filter(user=user).order_by("created") if not token.is_over]


def revoke(tokens: Iterable[ApiToken], by: By) -> list[ApiToken]:
    """Let nobody in by these any more, from the next request on; those that were not revoked before."""
    revoked = []
    with transaction.atomic():
        for token in tokens:
            now = timezone.now()
            if ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now):
                revoked.append(token)
        history.write(by, [history.changed(token, "revoked") for token in revoked])
    return revoked


def _check_label(label: str) -> None:
    if not label.strip() or len(label) > LONGEST_LABEL:
        raise DeskError(f"the label must have 1 to {LONGEST_LABEL} characters")
    try:
        validate_text(label)
    except ValidationError as error:
        raise DeskError(f"the label {error.messages[0]}") from None
