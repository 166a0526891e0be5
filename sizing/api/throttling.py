"""How many requests a minute: counters of fixed windows in the cache, one step a request."""

from __future__ import annotations

import logging
import time
from typing import Any

from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

logger = logging.getLogger(__name__)

WINDOW_S = 60
ANONYMOUS_A_MINUTE = 30
AWAY_S = 5.0
"""A cache that was away is not asked again for so long: one that hangs would hold up every request."""

_away_until = 0.0


class _Window(BaseThrottle):
    """Counts the requests of one caller in the current minute."""

    def allow_request(self, request: Request, view: Any) -> bool:
        caller = self.caller(request)
        return caller is None or self._allow(caller)

    def _allow(self, caller: str) -> bool:
        window = int(time.time() // WINDOW_S)
        return _count(f"throttle:{caller}:{window}") <= self.limit()

    def wait(self) -> float:
        """Seconds until the next window."""
        return WINDOW_S - time.time() % WINDOW_S + 1

    def caller(self, request: Request) -> str | None:
        """Who asks, or None for whom this throttle does not count."""
        raise NotImplementedError

    def limit(self) -> int:
        """Requests in a window."""
        raise NotImplementedError


class SignedInThrottle(_Window):
    """`THROTTLE` requests a minute for each signed-in user."""

    def caller(self, request: Request) -> str | None:
        return f"user:{request.user.pk}" if request.user.is_authenticated else None

    def limit(self) -> int:
        limit: int = settings.THROTTLE
        return limit


class AnonymousThrottle(_Window):
    """30 requests a minute for each address without a sign-in."""

    def caller(self, request: Request) -> str | None:
        if request.user.is_authenticated:
            return None
        return self._address(request)

    def allow_address(self, request: Request) -> bool:
        """Count a request whose token was wrong, and say whether its address may go on."""
        return self._allow(self._address(request))

    def _address(self, request: Request) -> str:
        return f"address:{self.get_ident(request)}"

    def limit(self) -> int:
        return ANONYMOUS_A_MINUTE


def _count(key: str) -> int:
    """Add one and give the count; the key outlives its window a little. 0 where the cache is away.

    Who may do what does not hang on it, so that a cache that is away holds up nobody.
    """
    global _away_until
    if time.monotonic() < _away_until:
        return 0
    try:
        return _counted(key)
    except (RedisError, OSError) as error:
        _away_until = time.monotonic() + AWAY_S
        logger.warning("requests are not counted, the cache is away: %s", " ".join(str(error).split()))
        return 0


def _counted(key: str) -> int:
    if cache.add(key, 1, timeout=2 * WINDOW_S):
        return 1
    try:
        return cache.incr(key)
    except ValueError:  # thrown out in between
        cache.set(key, 1, timeout=2 * WINDOW_S)
        return 1
