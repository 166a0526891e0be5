"""Field types and validators shared by the tables."""

from __future__ import annotations

import re
import unicodedata
from decimal import ROUND_HALF_EVEN, Decimal
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from sizing.domain.addresses import METADATA, named_alone
from sizing.log_context import request_id

MILLIONTH = Decimal("0.000001")
LARGEST_COUNT = 10**9
LARGEST_RATE = Decimal(10) ** 12
NAME_LENGTH = 255

# Model names end a URL path before these words, so a name that ends in one could not be addressed.
RESERVED_LAST_SEGMENTS = ("target", "refresh")

_HOST = re.compile(r"[\w.-]+|\[[0-9A-Fa-f:.]+\]")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*", re.ASCII)


def name_problem(name: str) -> str | None:
    """Say what is wrong with a name of any object, or None."""
    if not name:
        return "must not be empty"
    if len(name) > NAME_LENGTH:
        return f"must have at most {NAME_LENGTH} characters"
    if name != name.strip():
        return "must not begin or end with white space"
    if any(not c.isprintable() for c in name):
        return "must not have control characters"
    return None


def model_name_problem(name: str) -> str | None:
    """Say what is wrong with a served model's name, which is part of URL paths, or None."""
    problem = name_problem(name)
    if problem:
        return problem
    segments = name.split("/")
    if any(s in ("", ".", "..") for s in segments):
        return "must not have an empty or dot segment between slashes"
    if len(segments) > 1 and segments[-1] in RESERVED_LAST_SEGMENTS:
        return f"must not end in /{segments[-1]}"
    return None


def text_problem(text: str) -> str | None:
    """Say why a text cannot be stored (NUL on PostgreSQL) or shown in one line, or None."""
    if text.isprintable():
        return None
    if text.splitlines() != [text]:
        return "must be one line, without line breaks"
    return "must not have control characters"


def endpoint_problem(text: str) -> str | None:
    """Say why a text is no address of a replica, or None; empty is none to call.

    A secret must not get into the database, so there is no place for one, and the text is not repeated.
    """
    if not text:
        return None
    if not text.isprintable():
        return text_problem(text)
    try:
        parts = urlsplit(text)
    except ValueError:
        return "must be a URL such as http://10.0.0.7:8000/v1"
    _, at, host = parts.netloc.rpartition("@")
    if at:
        return "must not have a user or a password"
    if "?" in text or "#" in text:
        return "must not have a query or a fragment"
    name, port = re.fullmatch(r"(.*?)(?::([^:\]]*))?", host, re.DOTALL).groups()  # type: ignore[union-attr]
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(name) or " " in text or "\\" in text:
        return "must be a URL such as http://10.0.0.7:8000/v1"
    if port is not None and not (port.isascii() and port.isdigit() and 0 < int(port[:9]) < 65536):
        return "must have a port from 1 to 65535"
    return _address_problem(name)


def _address_problem(host: str) -> str | None:
    """What is wrong with a host that is an IP address, or None. Of an IPv4 address only the plain form is
    taken: `127.1`, `0x7f000001` and `2130706433` are addresses too, which nobody would see."""
    plain = unicodedata.normalize("NFKC", host)
    if plain.startswith("[") or _NUMBER.fullmatch(plain.rstrip(".").rpartition(".")[2]):
        try:
            ip = ip_address(plain.strip("[]"))
        except ValueError:
            return "must have an IP address in its usual form, such as 10.0.0.7 or [fd00::7]"
        if ip.is_unspecified or ip.is_multicast:
            return "must have the address of one host"
        ip = getattr(ip, "ipv4_mapped", None) or ip
        if ip in METADATA and not named_alone(ip, settings.ENDPOINT_NETWORKS):
            return "must not be a cloud's metadata service"
    return None


def validate_name(value: str) -> None:
    """Django validator around `name_problem`."""
    problem = name_problem(value)
    if problem:
        raise ValidationError(_("%(problem)s"), params={"problem": problem}, code="invalid")


def validate_model_name(value: str) -> None:
    """Django validator around `model_name_problem`."""
    problem = model_name_problem(value)
    if problem:
        raise ValidationError(_("%(problem)s"), params={"problem": problem}, code="invalid")


def validate_text(value: str) -> None:
    """Django validator around `text_problem`."""
    problem = text_problem(value)
    if problem:
        raise ValidationError(_("%(problem)s"), params={"problem": problem}, code="invalid")


def validate_endpoint(value: str) -> None:
    """Django validator around `endpoint_problem`."""
    problem = endpoint_problem(value)
    if problem:
        raise ValidationError(_("%(problem)s"), params={"problem": problem}, code="invalid")


if TYPE_CHECKING:
    _BigInteger = models.BigIntegerField[Decimal | int | str, Decimal]
else:
    _BigInteger = models.BigIntegerField


class ExactDecimalField(_BigInteger):
    """A decimal with six places, stored as whole millionths.

    SQLite has no decimal type and would keep a float; integers are exact on every database,
    up to 9.2e12. Longer decimals are rounded half-even.
    """

    description = "Decimal with six places"

    def from_db_value(self, value: int | None, expression: Any, connection: Any) -> Decimal | None:
        return None if value is None else Decimal(value).scaleb(-6)

    def to_python(self, value: Any) -> Decimal | None:
        if value is None or value == "":
            return None
        try:
            number = Decimal(str(value))
        except ArithmeticError:
            raise ValidationError(_("Enter a number."), code="invalid") from None
        if not number.is_finite():
            raise ValidationError(_("Enter a number."), code="invalid")
        if abs(number) > LARGEST_RATE:
            raise ValidationError(_("Enter a number up to 1e12."), code="invalid")
        return number.quantize(MILLIONTH, rounding=ROUND_HALF_EVEN)

    def get_prep_value(self, value: Any) -> int | None:
        number: Any = self.to_python(value)
        return None if number is None else int(number.scaleb(6))

    def value_to_string(self, obj: models.Model) -> str:
        value: Any = self.value_from_object(obj)
        return "" if value is None else str(value)

    def formfield(self, **kwargs: Any) -> forms.Field:
        return forms.DecimalField(
            required=not self.blank,
            label=str(self.verbose_name).capitalize(),
            help_text=self.help_text,
            max_digits=19,
            decimal_places=6,
            min_value=Decimal(0),
            max_value=LARGEST_RATE,
            **{k: v for k, v in kwargs.items() if k in ("widget", "initial", "disabled")},
        )

    @property
    def validators(self) -> list[Any]:
        # BigIntegerField's own range validators speak of the stored millionths.
        return list(self._validators)  # type: ignore[attr-defined]


def count(low: int = 0, **options: Any) -> models.BigIntegerField[Any, Any]:
    """A whole number from `low` to a billion."""
    return models.BigIntegerField(
        validators=[MinValueValidator(low), MaxValueValidator(LARGEST_COUNT)], **options
    )


def decimal(digits: int = 15, **options: Any) -> models.DecimalField[Any, Any]:
    """A decimal with six places; 15 digits are what SQLite keeps exactly."""
    return models.DecimalField(max_digits=digits, decimal_places=6, **options)


def name_field(unique: bool = True, **options: Any) -> models.CharField[str, str]:
    """The name of an object."""
    options.setdefault("validators", [validate_name])
    return models.CharField(max_length=NAME_LENGTH, unique=unique, **options)


def request_id_field() -> models.CharField[str, str]:
    """The request that a row was made in: what is logged about it later carries the id too."""
    return models.CharField(
        max_length=64,
        blank=True,
        default=request_id,
        db_default="",
        editable=False,
        help_text="Of the request in the log.",
    )


class Source(models.TextChoices):
    """Who keeps a row: people and their scripts, or the cluster's imports and syncs."""

    HAND = "", "by hand"
    KUBERNETES = "kubernetes", "Kubernetes"


def source_field() -> models.CharField[str, str]:
    """Who keeps a row."""
    return models.CharField(
        max_length=10, choices=Source, blank=True, default=Source.HAND, editable=False, verbose_name="kept by"
    )
