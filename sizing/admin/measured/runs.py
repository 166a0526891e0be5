"""Runs that measure: to watch while they last, to cancel, and to try again."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from sizing.admin.base import moment
from sizing.admin.measured import asking, words
from sizing.admin.measured.level_table import levels_part
from sizing.admin.page import PageAdmin
from sizing.measuring import refreshes
from sizing.models import BenchLevel, Measurement, Refresh
from sizing.templatetags.desk import num

MOST_FOLLOWED = 200


class RefreshAdmin(PageAdmin):
    """Written by the worker alone; people may look, cancel and ask for the same again."""

    list_display = (
        "number",
        "state_word",
        "percent",
        "what",
        "outcome",
        "queued",
        "finished",
    )
    list_filter = ("state", "trigger")
    search_fields = ("variant__model__name", "variant__name", "profile__name", "replica__name")
    actions = ("cancel_runs",)
    queued = moment("queued_at", "queued")
    list_select_related = ("variant__model", "profile", "requested_by")
    ordering = ("-queued_at", "-id")
    fieldsets = ()  # the page says it all in its own words

    def get_queryset(self, request: HttpRequest) -> QuerySet[Refresh]:
        related = ("variant__model", "profile", "replica", "requested_by")
        return super().get_queryset(request).select_related(*related)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fieldsets

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def may_cancel(self, request: HttpRequest) -> bool:
        return request.user.has_perm("sizing.change_refresh")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("live/", view(self.live_rows), name="sizing_refresh_live_rows"),
            path("<int:pk>/live/", view(self.live), name="sizing_refresh_live"),
            path("<int:pk>/cancel/", view(self.cancel), name="sizing_refresh_cancel"),
            path("<int:pk>/retry/", view(self.retry), name="sizing_refresh_retry"),
            *super().get_urls(),
        ]

    # Pages

    def page_part(self, request: HttpRequest, refresh: Refresh) -> dict[str, Any]:
        """What the page says of a run; the same whether it is opened or followed."""
        now = timezone.now()
        levels = list(BenchLevel.objects.filter(refresh=refresh)) or list(
            BenchLevel.objects.filter(measurement__refresh=refresh)
        )
        known = Measurement.objects.filter(variant=refresh.variant_id, profile=refresh.profile_id)
        taken = known.filter(refresh=refresh).first()
        active = refresh.state in Refresh.ACTIVE
        measurements = self.admin_site.get_model_admin(Measurement)
        return {
            "title": f"Refresh {refresh.pk}: {refresh.variant.model.name} on {refresh.profile.name}",
            "subtitle": None,
            "refresh": refresh,
            "active": active,
            "unfinished": refresh.state in (Refresh.State.FAILED, Refresh.State.CANCELLED),
            "asked": words.asked(refresh),
            "sentence": words.run_sentence(refresh, now, len(levels)),
            "sign": words.STATES[Refresh.State(refresh.state)],
            "numbers": words.live_numbers(refresh),
            "error": words.one_line(refresh.error, 500),
            "spent": words.spent(refresh, now) if refresh.started_at else "",
            "slo": words.slo_words(refresh.profile.slo),
            "may_cancel": active and not refresh.cancel_requested and self.may_cancel(request),
            "may_retry": not active and asking.may_ask(request),
            "taken": taken,
            "still_counts": None
            if active or taken
            else known.filter(slo_met=True, tok_per_sec__gt=0).first(),
            "may_view_measurements": measurements.has_view_permission(request),
            "levels": levels_part(levels, refresh.profile.slo),
            "levels_key": f"{refresh.state}-{refresh.attempts}-{len(levels)}",
        }

    def live(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The parts of a run's page that change, for the script that follows it."""
        refresh = self._viewed(request, pk)
        context = {**self.page_part(request, refresh), "opts": self.opts}
        return TemplateResponse(request, "admin/sizing/refresh/live.html", context)

    def live_rows(self, request: HttpRequest) -> HttpResponse:
        """The cells of the asked rows (`pk`, repeated) that change, for the script that follows a list."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        pks = [int(pk) for pk in request.GET.getlist("pk")[:MOST_FOLLOWED] if pk.isdecimal() and len(pk) < 19]
        rows = list(self.get_queryset(request).filter(pk__in=pks))
        context = {
            "cells": [cell(row, name) for row in rows for name in CELLS],
            "active": any(row.state in Refresh.ACTIVE for row in rows),
        }
        return TemplateResponse(request, "admin/sizing/refresh/live_rows.html", context)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        response = super().changelist_view(request, extra_context)
        found = getattr(response, "context_data", None) or {}
        if "cl" in found:
            active = [row for row in found["cl"].result_list if row.state in Refresh.ACTIVE]
            found["live_url"] = live_rows_url(active)
        return response

    def _viewed(self, request: HttpRequest, pk: int) -> Refresh:
        if not self.has_view_permission(request):
            raise PermissionDenied
        refresh = self.get_object(request, str(pk))
        if not isinstance(refresh, Refresh):
            raise Http404
        return refresh

    # What people may do

    def cancel(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Ask for the end of a run, by POST."""
        if not self.may_cancel(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        refresh = self._viewed(request, pk)
        if refreshes.cancel(pk):
            self.log_change(request, refresh, [{"changed": {"fields": ["cancel_requested"]}}])
            text, level = "is asked to stop; finished levels are kept", messages.SUCCESS
        else:
            text, level = "is over already; nothing was changed", messages.WARNING
        self.message_user(request, f"Refresh {pk} {text}.", level)
        return HttpResponseRedirect(asking.refresh_url(refresh))

    def retry(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Ask for the same run again, by POST."""
        if not asking.may_ask(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        refresh = self._viewed(request, pk)
        row, refusal = asking.again(request, pk)
        return asking.after_asking(self, request, row, refusal, asking.refresh_url(refresh))

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return self.may_cancel(request)

    @admin.action(description="Cancel: ask them to stop", permissions=["cancel"])
    def cancel_runs(self, request: HttpRequest, queryset: QuerySet[Refresh]) -> HttpResponse | None:
        """The action of the list: first which runs would stop, then, confirmed, ask them to."""
        active = queryset.filter(state__in=Refresh.ACTIVE, cancel_requested=False)
        runs = list(active.select_related("variant__model", "profile").order_by("pk"))
        if not runs:
            said = "Nothing to cancel: all that are marked are over, or asked to stop already."
            self.message_user(request, said, messages.INFO)
            return None
        number = f"{num(len(runs))} refresh{'es' * (len(runs) > 1)}"
        if not request.POST.get("confirmed"):
            return self.confirmation(
                request,
                action="cancel_runs",
                title=f"Cancel {number}?",
                changes=[f"#{run.pk} {self.what(run)}: {run.state} → cancelled" for run in runs],
                note="Finished levels are kept to look at; nothing becomes a measurement.",
                button="Yes, cancel",
            )
        stopped = [run for run in runs if refreshes.cancel(run.pk)]
        self.log_all(request, stopped, "cancel_requested")
        be = "is" if len(stopped) == 1 else "are"
        said = f"{num(len(stopped))} of {number} {be} asked to stop; finished levels are kept."
        self.message_user(request, said, messages.SUCCESS)
        return None

    # Columns

    @admin.display(description="refresh", ordering="id")
    def number(self, refresh: Refresh) -> str:
        return f"#{refresh.pk}"

    @admin.display(description="what", ordering="variant__model__name")
    def what(self, refresh: Refresh) -> str:
        return f"{refresh.variant.model.name} ({refresh.variant.name}) on {refresh.profile.name}"

    @admin.display(description="state", ordering="state")
    def state_word(self, refresh: Refresh) -> SafeString:
        return cell(refresh, "state")

    @admin.display(description="progress", ordering="progress")
    def percent(self, refresh: Refresh) -> SafeString:
        return cell(refresh, "progress")

    @admin.display(description="finished (UTC)", ordering="finished_at")
    def finished(self, refresh: Refresh) -> SafeString:
        return cell(refresh, "finished")

    @admin.display(description="what came of it")
    def outcome(self, refresh: Refresh) -> SafeString:
        return cell(refresh, "outcome")


CELLS = ("state", "progress", "finished", "outcome")
"""What of a run a list keeps up to date."""


def cell(refresh: Refresh, name: str) -> SafeString:
    """What a list shows of a run, in an element that can be followed."""
    context = {
        "refresh": refresh,
        "name": name,
        "sign": words.STATES[Refresh.State(refresh.state)],
        "outcome": words.one_line(refresh.error or refresh.message),
    }
    return render_to_string("admin/sizing/refresh/cell.html", context)


def live_rows_url(rows: list[Refresh]) -> str:
    """Where the changing cells of these runs are to be had; empty where there are no runs."""
    query = "&".join(f"pk={row.pk}" for row in rows)
    return f"{reverse('admin:sizing_refresh_live_rows')}?{query}" if rows else ""
