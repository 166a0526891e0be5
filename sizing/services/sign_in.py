"""Failed sign-ins make the next try wait, longer each time, by account and address and by address alone.

An account is never locked for everybody: whoever guesses makes only their own address wait. The counts stand
in the database, so that all web processes have the same.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network

from django.db.models import F

from sizing.models import SignInFailures
from sizing.models.clock import read_shared_now
from sizing.models.sign_in import FORGOTTEN_AFTER

FREE_TRIES = 5
FREE_TRIES_OF_ADDRESS = 50
"""Failures without a wait; the next ones wait 1, 2, 4, … seconds."""

LONGEST_WAIT_S = 900
_TRIES = 5


class Wait(Exception):  # noqa: N818  it reads as what it says
    """Too many failures before; `seconds` say how long to wait."""

    def __init__(self, seconds: float) -> None:
        self.seconds = max(math.ceil(seconds), 1)
        super().__init__(f"too many failed sign-ins; try again in {self.seconds} s")


class Attempt:
    """One try to sign in; a failure unless `succeeded` is called."""

    def __init__(self, name_key: str, address_key: str) -> None:
        self._name_key, self._address_key = name_key, address_key

    def succeeded(self) -> None:
        """Forget the account's failures from this address; those of the address were before this one."""
        SignInFailures.objects.filter(pk=self._name_key).delete()
        _take_back(self._address_key)


@contextmanager
def attempt(name: str, address: str) -> Iterator[Attempt]:
    """A try to sign in as somebody from somewhere; Wait where it is too early, and then nothing is counted.

    It counts as failed from its beginning, so that many at the same time are held to the limit too.
    """
    place = _place(address)
    name_key, address_key = _key("name", place, name.casefold()), _key("address", place)
    now = read_shared_now()
    _claim(address_key, FREE_TRIES_OF_ADDRESS, now)
    try:
        _claim(name_key, FREE_TRIES, now)
    except Wait:
        _take_back(address_key)
        raise
    yield Attempt(name_key, address_key)


def _claim(key: str, free: int, now: datetime) -> None:
    """Count one more failure; Wait where it is too early for a try."""
    for _ in range(_TRIES):
        row, _ = SignInFailures.objects.get_or_create(pk=key, defaults={"failures": 0, "free_at": now})
        left = (row.free_at - now).total_seconds()
        if 0 < left <= LONGEST_WAIT_S:  # more is of a clock that was wrong
            raise Wait(left)
        failures = 1 + (0 if row.free_at < now - FORGOTTEN_AFTER else row.failures)
        wait = min(2 ** min(failures - free, 20), LONGEST_WAIT_S) if failures >= free else 0
        same = SignInFailures.objects.filter(pk=key, failures=row.failures, free_at=row.free_at)
        if same.update(failures=failures, free_at=now + timedelta(seconds=wait)):
            return
    raise Wait(1)  # so many at the same time are no people


def _take_back(key: str) -> None:
    found = SignInFailures.objects.filter(pk=key, failures__gt=0)
    found.update(failures=F("failures") - 1, free_at=read_shared_now())


def _place(address: str) -> str:
    """Where a try comes from: an IPv6 host has a whole /64 to choose addresses from."""
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    return str(ip_network((ip, 64), strict=False)) if isinstance(ip, IPv6Address) else str(ip)


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
