"""What a collection can be filtered by."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Any

import django_filters  # type: ignore[import-untyped]
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db.models import QuerySet
from django.db.models.fields.json import KeyTransform
from django_filters.fields import IsoDateTimeField  # type: ignore[import-untyped]
from rest_framework.exceptions import ValidationError
from rest_framework.filters import OrderingFilter
from rest_framework.request import Request

from sizing.inventory.words import quoted
from sizing.models import (
    Answer,
    BenchImport,
    BenchProfile,
    Measurement,
    Node,
    Refresh,
    Replica,
    ServedModel,
    Target,
    Variant,
)
from sizing.models.fields import NAME_LENGTH


def _flag(**options: Any) -> django_filters.TypedChoiceFilter:
    """true or false; anything else is an error, not ignored."""
    return django_filters.TypedChoiceFilter(
        choices=[("true", "true"), ("false", "false")], coerce=lambda value: value == "true", **options
    )


def _name(field: str, label: str, **options: Any) -> django_filters.CharFilter:
    """The exact name of the object or of another."""
    return django_filters.CharFilter(
        field_name=field, lookup_expr="exact", max_length=NAME_LENGTH, label=label, strip=False, **options
    )


class _MomentField(IsoDateTimeField):
    def to_python(self, value: Any) -> datetime | None:
        moment: datetime | None = super().to_python(value)
        try:
            return moment and moment.astimezone(UTC)
        except OverflowError:  # before the first year, or after the last
            raise DjangoValidationError(self.error_messages["invalid"], code="invalid") from None


class _MomentFilter(django_filters.IsoDateTimeFilter):
    """A time that there is in UTC too."""

    field_class = _MomentField


class _Named(django_filters.FilterSet):
    name = _name("name", "Exact name.")
    name__contains = django_filters.CharFilter(
        field_name="name",
        lookup_expr="icontains",
        max_length=NAME_LENGTH,
        label="Part of the name, in any case.",
    )


class _Kept(_Named):
    # django-filter ignores an empty value, so what is kept by hand has a word here.
    source = django_filters.ChoiceFilter(
        choices=[("hand", "hand"), ("kubernetes", "kubernetes")],
        method="kept_by",
        label="Who keeps it: hand, or kubernetes for what the cluster's imports and syncs keep.",
    )

    def kept_by(self, rows: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        return rows.filter(source="" if value == "hand" else value)


class ModelFilter(_Kept):
    priority = django_filters.NumberFilter(
        min_value=-(2**31), max_value=2**31, decimal_places=0, label="Exact priority."
    )
    workload = django_filters.ChoiceFilter(choices=ServedModel.Workload.choices, label="model or other.")
    preemption_policy = django_filters.ChoiceFilter(
        choices=ServedModel.PreemptionPolicy.choices, label="Policy."
    )
    default_profile = _name("default_profile__name", "Name of the default profile.")
    owner = django_filters.CharFilter(field_name="owner", max_length=255, label="Exact owner.", strip=False)

    class Meta:
        model = ServedModel
        fields: list[str] = []


class ProfileFilter(_Named):
    arrival = django_filters.ChoiceFilter(
        choices=BenchProfile.Arrival.choices, label="poisson or concurrency."
    )

    class Meta:
        model = BenchProfile
        fields: list[str] = []


class VariantFilter(_Kept):
    model = _name("model__name", "Name of the model.")

    class Meta:
        model = Variant
        fields: list[str] = []


class NodeFilter(_Kept):
    ready = _flag(field_name="ready", label="Whether it is ready.")
    schedulable = _flag(field_name="schedulable", label="Whether it is not cordoned.")
    stale = _flag(field_name="stale", label="Whether it was not seen for too long.")
    type = _name("gpus__type", "Type of one of its GPUs.", distinct=True)
    label = django_filters.CharFilter(
        method="with_label", max_length=600, label="A label that it carries: `key`, or `key=value`."
    )

    class Meta:
        model = Node
        fields: list[str] = []

    def with_label(self, nodes: QuerySet[Node], name: str, value: str) -> QuerySet[Node]:
        key, equals, text = value.partition("=")
        if not equals:
            return nodes.filter(labels__has_key=key)
        return nodes.alias(label_value=KeyTransform(key, "labels")).filter(label_value=text)


class ReplicaFilter(_Kept):
    model = _name("variant__model__name", "Name of the model.")
    variant = _name("variant__name", "Name of the variant.")
    node = _name("placements__gpu__node__name", "Name of a node that it lies on.", distinct=True)
    state = django_filters.ChoiceFilter(choices=Replica.State.choices, label="State.")
    benchable = _flag(field_name="benchable", label="Whether measurements may use it.")

    class Meta:
        model = Replica
        fields: list[str] = []


class MeasurementFilter(django_filters.FilterSet):
    model = _name("variant__model__name", "Name of the model.")
    variant = _name("variant__name", "Name of the variant.")
    profile = _name("profile__name", "Name of the profile.")
    source = django_filters.CharFilter(
        field_name="source", max_length=255, label="Exact source.", strip=False
    )
    bound = django_filters.ChoiceFilter(choices=Measurement.Bound.choices, label="edge or floor.")
    stale = _flag(method="by_staleness", label="Whether it is marked stale.")

    class Meta:
        model = Measurement
        fields: list[str] = []

    def by_staleness(self, found: QuerySet[Measurement], name: str, value: bool) -> QuerySet[Measurement]:
        return found.exclude(stale_reason="") if value else found.filter(stale_reason="")


class TargetFilter(django_filters.FilterSet):
    model = _name("model__name", "Name of the model.")
    profile = _name("profile__name", "Name of the profile.")
    variant = _name("variant__name", "Name of the variant.")

    class Meta:
        model = Target
        fields: list[str] = []


class RefreshFilter(django_filters.FilterSet):
    model = _name("variant__model__name", "Name of the model.")
    variant = _name("variant__name", "Name of the variant.")
    profile = _name("profile__name", "Name of the profile.")
    state = django_filters.ChoiceFilter(choices=Refresh.State.choices, label="State.")
    trigger = django_filters.ChoiceFilter(choices=Refresh.Trigger.choices, label="What asked for it.")

    class Meta:
        model = Refresh
        fields: list[str] = []


class ImportFilter(django_filters.FilterSet):
    model = _name("variant__model__name", "Name of the model.")
    variant = _name("variant__name", "Name of the variant.")
    profile = _name("profile__name", "Name of the profile.")
    state = django_filters.ChoiceFilter(choices=BenchImport.State.choices, label="State.")
    trigger = django_filters.ChoiceFilter(choices=BenchImport.Trigger.choices, label="What brought it.")

    class Meta:
        model = BenchImport
        fields: list[str] = []


class AnswerFilter(django_filters.FilterSet):
    model = _name("model", "Name of the model.")
    asked_by = _name("asked_by_name", "Name of the account that asked.")
    channel = django_filters.ChoiceFilter(choices=Answer.Channel.choices, label="page, api or command.")
    fits = _flag(field_name="fits", label="Whether it fits.")
    asked_after = _MomentFilter(
        field_name="asked_at", lookup_expr="gte", label="Asked at this time or later."
    )
    asked_before = _MomentFilter(field_name="asked_at", lookup_expr="lt", label="Asked before this time.")

    class Meta:
        model = Answer
        fields: list[str] = []


class StableOrdering(OrderingFilter):
    """Ordering that puts equals in the order of their ids, so that pages do not overlap.

    A field that a list cannot be ordered by is an error, not ignored.
    """

    ordering_description = "Fields to order by, with commas between; a minus in front turns one around."

    def get_ordering(self, request: Request, queryset: QuerySet[Any], view: Any) -> list[str] | None:
        ordering = super().get_ordering(request, queryset, view)
        return [*ordering, "pk"] if ordering else None

    def remove_invalid_fields(
        self, queryset: QuerySet[Any], fields: Iterable[str], view: Any, request: Request
    ) -> list[str]:
        fields = list(fields)
        wrong = next((name for name in fields if name.removeprefix("-") not in view.ordering_fields), None)
        if wrong is not None:
            there = ", ".join(view.ordering_fields)
            raise ValidationError({"ordering": [f"cannot be by {quoted(wrong)}; there are {there}"]})
        return fields

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        one = f"-?({'|'.join(view.ordering_fields)})"
        described: list[dict[str, Any]] = super().get_schema_operation_parameters(view)
        for parameter in described:
            parameter["description"] += f" There are: {', '.join(view.ordering_fields)}."
            parameter["schema"]["pattern"] = f"^{one}(,{one})*$"
        return described


def check_parameters(request: Request, known: Collection[str]) -> None:
    """ValidationError where the query has a parameter that nobody reads, such as a misspelled one."""
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        there = f"there {'is' if len(known) == 1 else 'are'} {', '.join(known)}" if known else "there is none"
        raise ValidationError({name: [f"there is no such parameter; {there}"] for name in unknown})
