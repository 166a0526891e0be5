"""Labels, taints and tolerations in the form of Kubernetes, by the rules of the inventory file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from sizing.api.serializers.fields import Text
from sizing.inventory.document import Findings
from sizing.inventory.fields import Fields
from sizing.inventory.scheduling import (
    EFFECTS,
    LONGEST_KEY,
    key_problem,
    read_labels,
    read_taints,
    read_tolerations,
    taints_form,
    tolerations_form,
)

_KEY = {"type": "string", "maxLength": LONGEST_KEY}
_VALUE = {"type": "string", "maxLength": 255}


def _read(reader: Callable[[Fields, str], Any], data: Any) -> Any:
    """What the inventory's reader makes of a value; its findings are the field's errors."""
    findings = Findings()
    value = reader(Fields(findings, {"": data}, ""), "")
    if findings.errors:
        wrong: dict[str, list[str]] = {}
        for problem in findings.errors:
            wrong.setdefault(problem.path, []).append(problem.message)
        raise serializers.ValidationError(wrong)
    return value


class LabelKey(Text):
    """The key of a label."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=LONGEST_KEY, **options)

    def to_internal_value(self, data: Any) -> str:
        value = super().to_internal_value(data)
        problem = key_problem(value)
        if problem:
            raise serializers.ValidationError(problem)
        return value


@extend_schema_field({"type": "object", "additionalProperties": _VALUE})
class Labels(serializers.Field):  # type: ignore[type-arg]
    """Texts by label key."""

    def to_internal_value(self, data: Any) -> dict[str, str]:
        labels: dict[str, str] = _read(read_labels, data)
        return labels

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(
    {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"key": _KEY, "value": _VALUE, "effect": {"type": "string", "enum": list(EFFECTS)}},
            "required": ["key", "effect"],
        },
    }
)
class Taints(serializers.Field):  # type: ignore[type-arg]
    """Taints of a node."""

    def to_internal_value(self, data: Any) -> list[dict[str, str]]:
        return taints_form(_read(read_taints, data))

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(
    {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "key": _KEY,
                "operator": {"type": "string", "enum": ["Equal", "Exists"]},
                "value": _VALUE,
                "effect": {"type": "string", "enum": [*EFFECTS, ""]},
            },
        },
    }
)
class Tolerations(serializers.Field):  # type: ignore[type-arg]
    """Tolerations of a variant."""

    def to_internal_value(self, data: Any) -> list[dict[str, str]]:
        return tolerations_form(_read(read_tolerations, data))

    def to_representation(self, value: Any) -> Any:
        return value
