"""What imports and syncs of a cluster keep: a filter of lists, a line in forms, whose a saved change is."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from sizing.admin.base import DeskModelAdmin
from sizing.models import Source


class SourceFilter(admin.SimpleListFilter):
    title = "source"
    parameter_name = "source"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("hand", "by hand"), (Source.KUBERNETES.value, "Kubernetes")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "hand":
                return queryset.filter(source=Source.HAND)
            case Source.KUBERNETES.value:
                return queryset.filter(source=Source.KUBERNETES)
        return queryset


class KeptAdmin(DeskModelAdmin):
    """For tables whose rows may be kept by the cluster's imports and syncs."""

    kept_note: str  # said above the form of such a row, for those who may change it

    def get_list_filter(self, request: HttpRequest) -> Any:
        return [*super().get_list_filter(request), SourceFilter]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None or obj.source != Source.KUBERNETES or not self.has_change_permission(request, obj):
            return fieldsets
        (name, first), *others = fieldsets
        return [(name, {**first, "description": self.kept_note}), *others]


class MadeAdmin(KeptAdmin):
    """For models and variants: what is changed here, imports and syncs leave alone from then on."""

    kept_note = "Made from the cluster. Saving a change keeps it by hand from then on."

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if form.has_changed():
            obj.source = Source.HAND
        super().save_model(request, obj, form, change)
