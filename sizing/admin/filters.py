"""Filters of lists that offer few choices, however many rows there are; others are found by search."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest

from sizing.domain.specs import HOLDING_STATES
from sizing.models import Gpu, Node, Placement, Replica, ServedModel, Variant
from sizing.models.zone import Zone

CHOICES_SHOWN = 40
NO_ZONE = "-"

Choices = list[tuple[str, str]]


class FewFilter(admin.SimpleListFilter):
    """By one of the first choices; one that was chosen by address is always among them."""

    def choices_there_are(self) -> Choices:
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        found = self.choices_there_are()[:CHOICES_SHOWN]
        chosen = request.GET.get(self.parameter_name or "")
        if chosen and chosen not in {value for value, _ in found}:
            found = [*found, (chosen, self.said(chosen))]
        return found

    def said(self, value: str) -> str:
        """How a choice is called that is not among the first."""
        return value


class NodeStateFilter(admin.SimpleListFilter):
    """By what keeps a node closed."""

    title = "state"
    parameter_name = "state"
    BY = {
        "open": {"ready": True, "schedulable": True, "stale": False},
        "cordoned": {"schedulable": False},
        "not-ready": {"ready": False},
        "stale": {"stale": True},
    }

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        return [(word, word.replace("-", " ")) for word in self.BY]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(**self.BY.get(self.value() or "", {}))


class ZoneFilter(FewFilter):
    """By the label that clusters name their zones with."""

    title = "zone"
    parameter_name = "zone"

    def choices_there_are(self) -> Choices:
        return _zones()

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.value():
            return queryset
        labels = "labels" if queryset.model is Node else "node__labels"
        zone = None if self.value() == NO_ZONE else self.value()
        found: QuerySet[Any] = queryset.alias(in_zone=Zone(labels)).filter(in_zone=zone)
        return found


def _zones() -> Choices:
    found = set(Node.objects.order_by().values_list(Zone("labels"), flat=True).distinct())
    without = [(NO_ZONE, "without a zone")] if None in found and len(found) > 1 else []
    return [*((zone, zone) for zone in sorted(zone for zone in found if zone)), *without]


class GpuTypeFilter(FewFilter):
    title = "GPU type"
    parameter_name = "gpu_type"

    def choices_there_are(self) -> Choices:
        return _gpu_types()

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.value():
            return queryset
        if queryset.model is Gpu:
            return queryset.filter(type=self.value())
        return queryset.filter(pk__in=Gpu.objects.filter(type=self.value()).values("node"))


def _gpu_types() -> Choices:
    types = Gpu.objects.order_by("type").values_list("type", flat=True).distinct()
    return [(name, name) for name in types]


class HeldFilter(admin.SimpleListFilter):
    """By whether a replica holds the GPU; a pending one holds nothing."""

    title = "held"
    parameter_name = "held"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        return [("yes", "held"), ("no", "free")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        holders = Placement.objects.filter(gpu=OuterRef("pk"), replica__state__in=HOLDING_STATES)
        match self.value():
            case "yes":
                return queryset.filter(Exists(holders))
            case "no":
                return queryset.filter(~Exists(holders))
        return queryset


class ModelFilter(FewFilter):
    """By model (`?model=` its key), of those that run; of many only the chosen one is offered."""

    title = "model"
    parameter_name = "model"

    def choices_there_are(self) -> Choices:
        found = _running_models()
        return found if len(found) <= CHOICES_SHOWN else []

    def said(self, value: str) -> str:
        model = ServedModel.objects.filter(pk=value).first() if _is_key(value) else None
        return model.name if model else "no such model"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.value():
            return queryset
        return queryset.filter(variant__model=self.value()) if _is_key(self.value()) else queryset.none()


def _running_models() -> Choices:
    run = Variant.objects.filter(Exists(Replica.objects.filter(variant=OuterRef("pk"))))
    models = ServedModel.objects.filter(pk__in=run.values("model")).order_by("name")
    return [(str(pk), name) for pk, name in models.values_list("pk", "name")[: CHOICES_SHOWN + 1]]


class OnNodeFilter(FewFilter):
    """By node (`?node=` its key), for links from a node's page; the list itself offers none."""

    title = "node"
    parameter_name = "node"

    def choices_there_are(self) -> Choices:
        return []

    def said(self, value: str) -> str:
        node = Node.objects.filter(pk=value).first() if _is_key(value) else None
        return node.name if node else "no such node"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        node = self.value()
        if not node:
            return queryset
        if not _is_key(node):
            return queryset.none()
        return queryset.filter(pk__in=Placement.objects.filter(gpu__node=int(node)).values("replica"))


class FewRelated(admin.RelatedFieldListFilter):
    """By a related object: the first by name, and the chosen one."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        related = field.remote_field.model._default_manager
        rows = list(related.order_by("name")[:CHOICES_SHOWN])
        chosen = request.GET.get(self.lookup_kwarg, "")
        if _is_key(chosen) and int(chosen) not in {row.pk for row in rows}:
            rows += related.filter(pk=chosen)
        return [(str(row.pk), str(row)) for row in rows]


def _is_key(value: str | None) -> bool:
    return bool(value and value.isascii() and value.isdecimal() and len(value) < 19)
