"""Measurements: what one replica served, and the levels that it rests on."""

from __future__ import annotations

from functools import partial
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils import timezone

from sizing.admin.base import moment
from sizing.admin.fields import label_date_and_time, warnings_field
from sizing.admin.filters import FewRelated
from sizing.admin.measured import asking, comparing, kept, words
from sizing.admin.measured.level_table import levels_part
from sizing.admin.page import PageAdmin
from sizing.measuring.staleness import Look
from sizing.models import Measurement, Refresh
from sizing.templatetags.desk import age, rate


class MeasurementForm(forms.ModelForm):  # type: ignore[type-arg]
    warnings = warnings_field()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        label_date_and_time(self.fields, "measured_at")


class SloFilter(admin.BooleanFieldListFilter):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "SLO met"


class MeasurementAdmin(PageAdmin):
    """Those entered by hand can be changed; those that were measured are evidence, and only be deleted."""

    form = MeasurementForm
    list_display = (
        "model_name",
        "variant_name",
        "profile",
        "rate",
        "bound_word",
        "measured",
        "measured_ago",
        "counts",
        "source",
    )
    list_display_links = ("model_name", "variant_name")
    list_filter = (("slo_met", SloFilter), "bound", ("profile", FewRelated))
    search_fields = ("variant__model__name", "variant__name", "profile__name", "source", "engine")
    list_select_related = ("variant__model", "profile")
    autocomplete_fields = ("variant", "profile")
    ordering = ("-measured_at", "-id")
    readonly_fields = ("stale_reason",)
    actions = ("compare", "refresh_now")
    measured = moment("measured_at", "measured")
    fieldsets = (
        (None, {"fields": ("variant", "profile", "tok_per_sec", "measured_at")}),
        ("How", {"fields": ("source", "engine", "bound", "slo_met", "warnings", "stale_reason")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Measurement]:
        related = ("variant__model", "profile", "refresh")
        return super().get_queryset(request).select_related(*related)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        file, compare = view(partial(kept.file_view, self)), view(partial(comparing.compare_view, self))
        return [
            path("<int:pk>/files/<int:file>/", file, name="sizing_measurement_file"),
            path("compare/", compare, name="sizing_measurement_compare"),
            *super().get_urls(),
        ]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "measured_at": timezone.now().replace(microsecond=0),
            **super().get_changeform_initial_data(request),
        }

    def has_change_permission(self, request: HttpRequest, obj: Measurement | None = None) -> bool:
        return super().has_change_permission(request, obj) and not (obj is not None and obj.was_measured)

    def get_fieldsets(self, request: HttpRequest, obj: Measurement | None = None) -> Any:
        # The page says all of what was measured in its own words.
        return () if obj is not None and obj.was_measured else super().get_fieldsets(request, obj)

    def page_part(self, request: HttpRequest, measurement: Measurement) -> dict[str, Any]:
        """What the page says of a measurement beside its form."""
        now = timezone.now()
        model, profile = measurement.variant.model, measurement.profile
        runs = self.admin_site.get_model_admin(Refresh)
        levels = list(measurement.levels.all())
        before = comparing.one_before(measurement)
        return {
            "title": f"{model.name} on {profile.name}",
            "subtitle": None,
            "folded": "yes",
            "was_measured": measurement.was_measured,
            "figure": words.figure(measurement),
            "meaning": words.meaning(measurement),
            "counts": words.counts(measurement),
            "bracket": measurement.bracket or words.BOUNDS.get(measurement.bound, ""),
            "stale": Look(now).reason(measurement.pk, profile.name, measurement.measured_at),
            "age": age((now - measurement.measured_at).total_seconds()),
            "slo": words.slo_words(measurement.slo),
            "workload": words.workload_words(measurement.workload),
            "seed": measurement.workload.get("seed"),
            "run": measurement.refresh if runs.has_view_permission(request) else None,
            "took": words.spent(measurement.refresh, now) if measurement.refresh else "",
            "offer": asking.offer(request, model, measurement.variant.name, profile.name),
            "levels": levels_part(levels, measurement.slo),
            "downloads": kept.downloads(measurement, bool(levels)),
            "before": before,
            "compare_url": comparing.compare_url(before.pk, measurement.pk) if before else "",
            "imported_as": kept.imported_as(measurement),
        }

    # Columns

    @admin.display(description="model", ordering="variant__model__name")
    def model_name(self, measurement: Measurement) -> str:
        return measurement.variant.model.name

    @admin.display(description="variant", ordering="variant__name")
    def variant_name(self, measurement: Measurement) -> str:
        return measurement.variant.name

    @admin.display(description="a replica (tok/s)", ordering="tok_per_sec")
    def rate(self, measurement: Measurement) -> str:
        return rate(measurement.tok_per_sec)

    @admin.display(description="bound", ordering="bound")
    def bound_word(self, measurement: Measurement) -> str:
        return measurement.bound or ""

    @admin.display(description="age", ordering="-measured_at")
    def measured_ago(self, measurement: Measurement) -> str:
        return age((timezone.now() - measurement.measured_at).total_seconds())

    @admin.display(description="counts")
    def counts(self, measurement: Measurement) -> str:
        if not measurement.slo_met:
            return "no: SLO not met"
        if measurement.tok_per_sec <= 0:
            return "no: nothing served"
        return f"yes, stale: {measurement.stale_reason}" if measurement.stale_reason else "yes"

    # Actions

    def has_refresh_permission(self, request: HttpRequest) -> bool:
        return asking.may_ask(request)

    @admin.action(description="Compare: two measurements side by side", permissions=["view"])
    def compare(self, request: HttpRequest, queryset: QuerySet[Measurement]) -> HttpResponse | None:
        return comparing.compare_action(self, request, queryset)

    @admin.action(description="Refresh now: measure the same again", permissions=["refresh"])
    def refresh_now(self, request: HttpRequest, queryset: QuerySet[Measurement]) -> HttpResponse | None:
        measurements = queryset.select_related("variant__model", "profile").order_by("pk")
        return asking.refresh_action(self, request, asking.wishes_of_measurements(measurements))
