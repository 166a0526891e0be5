"""Measurements, and the runs that take them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from sizing.admin.base import DeskModelAdmin, moment
from sizing.admin.fields import label_date_and_time, warnings_field
from sizing.measuring import refreshes
from sizing.models import Measurement, Refresh
from sizing.templatetags.desk import age, num


class MeasurementForm(forms.ModelForm):  # type: ignore[type-arg]
    warnings = warnings_field()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        label_date_and_time(self, "measured_at")


class SloFilter(admin.BooleanFieldListFilter):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "SLO met"


class MeasurementAdmin(DeskModelAdmin):
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
    list_filter = (("slo_met", SloFilter), "bound", "profile")
    search_fields = ("variant__model__name", "variant__name", "profile__name", "source", "engine")
    list_select_related = ("variant__model", "profile")
    autocomplete_fields = ("variant", "profile")
    ordering = ("-measured_at", "-id")
    readonly_fields = ("stale_reason",)
    measured = moment("measured_at", "measured")
    fieldsets = (
        (None, {"fields": ("variant", "profile", "tok_per_sec", "measured_at")}),
        ("How", {"fields": ("source", "engine", "bound", "slo_met", "warnings", "stale_reason")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Measurement]:
        return super().get_queryset(request).select_related("variant__model", "profile")

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "measured_at": timezone.now().replace(microsecond=0),
            **super().get_changeform_initial_data(request),
        }

    @admin.display(description="model", ordering="variant__model__name")
    def model_name(self, measurement: Measurement) -> str:
        return measurement.variant.model.name

    @admin.display(description="variant", ordering="variant__name")
    def variant_name(self, measurement: Measurement) -> str:
        return measurement.variant.name

    @admin.display(description="a replica (tok/s)", ordering="tok_per_sec")
    def rate(self, measurement: Measurement) -> str:
        return num(measurement.tok_per_sec)

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


class RefreshAdmin(DeskModelAdmin):
    """Written by the worker alone; people may look, and cancel."""

    list_display = (
        "number",
        "model_name",
        "variant_name",
        "profile",
        "state",
        "percent",
        "trigger",
        "queued",
        "finished",
        "error_line",
    )
    list_filter = ("state", "trigger")
    search_fields = ("variant__model__name", "variant__name", "profile__name", "replica__name")
    queued = moment("queued_at", "queued")
    finished = moment("finished_at", "finished")
    list_select_related = ("variant__model", "profile", "requested_by")
    ordering = ("-queued_at", "-id")
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "model_name",
                    "variant",
                    "profile",
                    "replica",
                    "state",
                    "progress",
                    "message",
                    "error",
                )
            },
        ),
        (
            "Life",
            {
                "fields": (
                    "trigger",
                    "requested_by",
                    "attempts",
                    "cancel_requested",
                    "queued_at",
                    "started_at",
                    "heartbeat_at",
                    "finished_at",
                )
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Refresh]:
        related = ("variant__model", "profile", "replica", "requested_by")
        return super().get_queryset(request).select_related(*related)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def may_cancel(self, request: HttpRequest) -> bool:
        return request.user.has_perm("sizing.change_refresh")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.cancel)
        return [path("<int:pk>/cancel/", view, name="sizing_refresh_cancel"), *super().get_urls()]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        active = (
            Refresh.objects.filter(pk=object_id, state__in=Refresh.ACTIVE) if object_id.isdecimal() else None
        )
        cancellable = self.may_cancel(request) and active is not None and active.exists()
        extra = {"may_cancel": cancellable, **(extra_context or {})}
        return super().change_view(request, object_id, form_url, extra)

    def cancel(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Ask for the end of a run, by POST."""
        if not self.may_cancel(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        refresh = self.get_object(request, str(pk))
        if refresh is None:
            raise Http404
        if refreshes.cancel(pk):
            self.log_change(request, refresh, [{"changed": {"fields": ["cancel_requested"]}}])
            text, level = "is asked to stop; a running one ends after its present step", messages.SUCCESS
        else:
            text, level = "is over already", messages.WARNING
        self.message_user(request, f"Refresh {pk} {text}.", level)
        return HttpResponseRedirect(reverse("admin:sizing_refresh_change", args=[pk]))

    @admin.display(description="refresh", ordering="id")
    def number(self, refresh: Refresh) -> str:
        return f"#{refresh.pk}"

    @admin.display(description="model", ordering="variant__model__name")
    def model_name(self, refresh: Refresh) -> str:
        return refresh.variant.model.name

    @admin.display(description="variant", ordering="variant__name")
    def variant_name(self, refresh: Refresh) -> str:
        return refresh.variant.name

    @admin.display(description="progress", ordering="progress")
    def percent(self, refresh: Refresh) -> str:
        return num(refresh.progress, "%")

    @admin.display(description="error")
    def error_line(self, refresh: Refresh) -> str:
        first = refresh.error.strip().partition("\n")[0]
        return f"{first[:119]}…" if len(first) > 120 else first


ADMINS = ((Measurement, MeasurementAdmin), (Refresh, RefreshAdmin))
