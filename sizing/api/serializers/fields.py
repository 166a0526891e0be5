"""Field types with the rules of the inventory file: nothing is guessed from another type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from rest_framework import serializers
from rest_framework.fields import empty

from sizing.models.fields import (
    LARGEST_COUNT,
    MILLIONTH,
    NAME_LENGTH,
    endpoint_problem,
    model_name_problem,
    name_problem,
    text_problem,
)

NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
LONGEST_NUMBER = 64
LARGEST = Decimal("999999999.999999")  # of what is stored with 15 digits


class Text(serializers.CharField):
    """A text of one line; a number or a boolean is none."""

    default_error_messages = {"invalid": "must be a text"}

    def __init__(self, **options: Any) -> None:
        options.setdefault("trim_whitespace", False)
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        problem = self.problem(data)
        if problem:
            raise serializers.ValidationError(problem)
        return super().to_internal_value(data)

    def problem(self, value: str) -> str | None:
        """What is wrong with it."""
        return text_problem(value)


class Endpoint(Text):
    """The address of a replica."""

    def problem(self, value: str) -> str | None:
        return endpoint_problem(value)


class Name(Text):
    """The name of an object."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("max_length", NAME_LENGTH)
        super().__init__(**options)

    def problem(self, value: str) -> str | None:
        return name_problem(value)


class ModelName(Name):
    """The name of a served model, which is part of addresses."""

    def problem(self, value: str) -> str | None:
        return model_name_problem(value)


class Ref(Name):
    """The name of another object, shown by its path from this one: `variant.model.name`."""

    def __init__(self, path: str, **options: Any) -> None:
        self.path = path
        super().__init__(**options)

    def get_attribute(self, instance: Any) -> Any:
        for part in self.path.split("."):
            instance = getattr(instance, part, None)
        return instance


class Whole(serializers.IntegerField):
    """A whole number; 5.0 is one, "5" and true are none."""

    default_error_messages = {"invalid": "must be a whole number"}

    def __init__(self, low: int = 0, high: int = LARGEST_COUNT, **options: Any) -> None:
        super().__init__(min_value=low, max_value=high, **options)

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int | Decimal | float):
            self.fail("invalid")
        number = Decimal(str(data))
        # An exponent may make a number that no memory holds.
        if not number.is_finite() or number.adjusted() > 20 or number != number.to_integral_value():
            self.fail("invalid")
        return int(number)


class Yes(serializers.BooleanField):
    """true or false, and nothing that means either."""

    default_error_messages = {"invalid": "must be true or false"}

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class Amount(serializers.Field):  # type: ignore[type-arg]
    """An exact decimal with six places; longer ones are rounded half-even. Shown as a number."""

    default_error_messages = {
        "invalid": "must be a number",
        "low": "must be at least {low}",
        "above": "must be above {low}",
        "high": "must be at most {high}",
    }

    def __init__(
        self, low: int | None = 0, high: int | Decimal = LARGEST, above: bool = False, **options: Any
    ) -> None:
        """From `low` (without it, where `above`) to `high`."""
        self.low, self.high, self.above = low, high, above
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> Decimal:
        if isinstance(data, bool) or not isinstance(data, int | float | Decimal):
            self.fail("invalid")
        text = str(data)
        if len(text) > LONGEST_NUMBER or not NUMBER.fullmatch(text):
            self.fail("invalid")
        number = Decimal(text)
        if number.is_zero():
            number = Decimal(0)  # whatever its exponent
        if number > self.high:
            self.fail("high", high=self.high)
        if self.low is not None and number < self.low:
            self.fail("above" if self.above else "low", low=self.low)
        number = number.quantize(MILLIONTH, rounding=ROUND_HALF_EVEN)
        if self.above and self.low is not None and number <= self.low:
            self.fail("above", low=self.low)
        if number > self.high:
            self.fail("high", high=self.high)
        return number

    def to_representation(self, value: Any) -> float:
        return float(value)


class AmountShape(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """How the OpenAPI document describes an amount."""

    target_class = Amount

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        shape: dict[str, Any] = {"type": "number", "format": "double", "maximum": float(self.target.high)}
        if self.target.low is not None:
            shape["minimum"] = self.target.low
        if self.target.above:
            shape["exclusiveMinimum"] = True
        return shape


class Distinct(serializers.ListField):
    """A list in which nothing stands twice."""

    def to_internal_value(self, data: Any) -> list[Any]:
        values: list[Any] = super().to_internal_value(data)
        first: dict[Any, int] = {}
        again = [i for i, value in enumerate(values) if first.setdefault(value, i) < i]
        if again:
            raise serializers.ValidationError({f"[{i}]": ["stands there twice"] for i in again})
        return values


class Moment(serializers.DateTimeField):
    """A point in time, ISO 8601; without a zone it is UTC."""


class KeptBy(serializers.CharField):
    """Who keeps an object; told, never taken."""

    def __init__(self, **options: Any) -> None:
        told = "Who keeps it: empty, people and their scripts; kubernetes, the cluster's imports and syncs."
        super().__init__(read_only=True, help_text=told, **options)


class Choice(serializers.ChoiceField):
    """One of a few words."""

    default_error_messages = {"invalid_choice": "must be one of {choices_named}"}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in self.choices:
            self.fail("invalid_choice", choices_named=", ".join(str(c) for c in self.choices))
        return data


class Strict(serializers.Serializer):  # type: ignore[type-arg]
    """An object without unknown keys; read-only ones may stand there, for what was read may be sent back."""

    default_error_messages = {"invalid": "must be an object"}

    def to_internal_value(self, data: Any) -> Any:
        unknown = [key for key in data if key not in self.fields] if isinstance(data, Mapping) else []
        try:
            value = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if not unknown or not isinstance(error.detail, dict):
                raise
            raise serializers.ValidationError({**error.detail, **_unknown(unknown)}) from None
        if unknown:
            raise serializers.ValidationError(_unknown(unknown))
        return value


class Part(Strict):
    """An object inside another. A PATCH replaces it as a whole, so its own rules are those of a new one."""

    _alone: Part | None = None

    def run_validation(self, data: Any = empty) -> Any:
        if not getattr(self.root, "partial", False) or self.root is self:
            return super().run_validation(data)
        if data is empty or (data is None and self.allow_null):
            return super().run_validation(data)
        if self._alone is None:
            self._alone = type(self)(context=self.context)
        return self._alone.run_validation(data)


def _unknown(keys: list[Any]) -> dict[str, list[str]]:
    return {str(key): ["there is no such key"] for key in keys}
