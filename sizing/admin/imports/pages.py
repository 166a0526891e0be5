"""Imports of result files: give them, look at what they show, then store or discard it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.csrf import csrf_exempt

from sizing.admin.base import moment
from sizing.admin.imports import shown
from sizing.admin.imports.form import capitalized
from sizing.admin.imports.giving import give
from sizing.admin.measured import words
from sizing.admin.page import PageAdmin
from sizing.models import BenchFile, BenchImport, Measurement
from sizing.services import imports
from sizing.services.errors import DeskError

State = BenchImport.State


class StateFilter(admin.SimpleListFilter):
    """By state, in the words that the list says it in."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        return list(shown.NAMES.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(state=self.value()) if self.value() else queryset


class BenchImportAdmin(PageAdmin):
    """Who may add a measurement may give files and store what they show; others may look."""

    add_label = "Import result files"
    list_display = ("number", "state_word", "what", "outcome", "asked_by", "queued")
    list_filter = (StateFilter, "trigger")
    search_fields = (
        "variant__model__name",
        "variant__name",
        "profile__name",
        "files__name",
        "measurement__files__name",
    )
    list_select_related = ("variant__model", "profile", "requested_by", "measurement")
    autocomplete_fields = ("variant", "profile")
    ordering = ("-queued_at", "-id")
    queued = moment("queued_at", "given")

    def get_queryset(self, request: HttpRequest) -> QuerySet[BenchImport]:
        related = ("variant__model", "profile", "requested_by", "measurement")
        return super().get_queryset(request).select_related(*related)

    def for_list(self, queryset: QuerySet[BenchImport]) -> QuerySet[BenchImport]:
        return queryset.defer("preview", "finding").annotate(right=Q(finding__isnull=False))

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return ()  # the page says it all in its own words

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("sizing.add_measurement")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Whoever may see what was measured may see what it came from.
        perms = ("sizing.view_measurement", "sizing.add_measurement")
        return super().has_view_permission(request, obj) or any(map(request.user.has_perm, perms))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        acts = {
            "store": self.store,
            "leave-out": self.leave_out,
            "force": self.take_other_shapes,
            "discard": self.discard,
        }
        return [
            path("add/", view(csrf_exempt(partial(give, self))), name="sizing_benchimport_add"),
            path("<int:pk>/live/", view(self.live), name="sizing_benchimport_live"),
            *(
                path(f"<int:pk>/{word}/", view(self._act(act)), name=f"sizing_benchimport_{word}")
                for word, act in acts.items()
            ),
            *super().get_urls(),
        ]

    # Looking at them

    def page_part(self, request: HttpRequest, row: BenchImport) -> dict[str, Any]:
        """What the page says of an import; the same whether it is opened or followed."""
        whose = Q(bench_import=row)
        if row.measurement_id:
            whose |= Q(measurement=row.measurement_id)
        kept = list(BenchFile.objects.filter(whose))
        counting = shown.counting_sweep(row)
        state = State(row.state)
        slo = shown.slo_of(row)
        measurements = self.admin_site.get_model_admin(Measurement)
        done = state == State.DONE
        refused = row.preview.get("refused", []) if done else []
        return {
            "title": f"Import {row.pk}: {shown.what(row)}",
            "subtitle": None,
            "row": row,
            "active": state in shown.ACTIVE,
            "badge": shown.NAMES[state],
            "sign": shown.SIGNS[state],
            "sentence": shown.sentence(row, timezone.now()),
            "bracket": counting["bracket"] if counting else "",
            "bound": counting["bound"] if counting else None,
            "error": words.one_line(row.error, 500),
            "refused": refused,
            "warnings": (row.finding or row.preview).get("warnings", []),
            "what_for": shown.what(row),
            "asked": shown.asked(row),
            "slo": words.slo_words(slo),
            "facts": shown.stored_facts(row, len(kept)) if done else [],
            "may_act": self.has_add_permission(request) and state not in (State.RUNNING, State.STORED),
            "may_store": done and row.finding is not None,
            "may_leave_out": bool(refused) and counting is not None,
            "may_force": shown.of_other_shape(row) and done,
            "may_view_measurements": measurements.has_view_permission(request),
            "levels": shown.levels_of(row),
            "sweeps": shown.sweeps_of(row),
            "files": shown.files_of(row, kept),
            "latencies": shown.latency_names(slo),
            "key": f"{row.state}-{row.attempts}",
            # To discard it is the way, and what is stored is told here for good.
            "show_delete": False,
        }

    def live(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The parts of an import's page that change, for the script that follows it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = self.get_object(request, str(pk))
        if not isinstance(row, BenchImport):
            raise Http404
        context = {**self.page_part(request, row), "opts": self.opts}
        return TemplateResponse(request, "admin/sizing/benchimport/live.html", context)

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponseRedirect:
        said = (
            f"There is no import {words.one_line(str(object_id), 20)} any more: it was discarded, or too old."
        )
        self.message_user(request, said, messages.WARNING)
        return HttpResponseRedirect(reverse("admin:sizing_benchimport_changelist"))

    def _url(self, pk: int) -> str:
        return reverse("admin:sizing_benchimport_change", args=[pk])

    # What is done with them

    def _act(self, act: Callable[[HttpRequest, BenchImport], HttpResponse]) -> Callable[..., HttpResponse]:
        """An act on an import, by POST, for those who may store; a refusal is said on its page."""

        def view(request: HttpRequest, pk: int) -> HttpResponse:
            if not self.has_add_permission(request):
                raise PermissionDenied
            if request.method != "POST":
                return HttpResponseNotAllowed(["POST"])
            row = self.get_object(request, str(pk))
            if not isinstance(row, BenchImport):
                return self._get_obj_does_not_exist_redirect(request, self.opts, str(pk))
            try:
                return act(request, row)
            except DeskError as refusal:
                self.message_user(request, f"{capitalized(refusal.message)}.", messages.ERROR)
                return HttpResponseRedirect(self._url(pk))

        return view

    def store(self, request: HttpRequest, row: BenchImport) -> HttpResponse:
        return self._stored(request, imports.store(row.pk))

    def leave_out(self, request: HttpRequest, row: BenchImport) -> HttpResponse:
        """Store without what is refused."""
        again = imports.read_again(row.pk, force=row.force, leave_out_broken=True, to_store=True)
        if again.measurement is None:
            return HttpResponseRedirect(self._url(row.pk))
        return self._stored(request, again.measurement)

    def take_other_shapes(self, request: HttpRequest, row: BenchImport) -> HttpResponse:
        """Look at it once more, with the points of another shape."""
        imports.read_again(row.pk, force=True, leave_out_broken=row.leave_out_broken)
        return HttpResponseRedirect(self._url(row.pk))

    def discard(self, request: HttpRequest, row: BenchImport) -> HttpResponse:
        imports.discard(row.pk)
        self.log_deletions(request, cast(Any, [row]))
        self.message_user(request, f"Import {row.pk} is discarded; nothing was stored.", messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:sizing_benchimport_changelist"))

    def _stored(self, request: HttpRequest, measurement: Measurement) -> HttpResponse:
        admin_of = self.admin_site.get_model_admin(Measurement)
        admin_of.log_addition(request, measurement, [{"added": {}}])
        self.message_user(request, "The measurement is stored, with its files beside it.", messages.SUCCESS)
        if newer := imports.newer_than(measurement):
            when = f"{newer.measured_at:%Y-%m-%d %H:%M} UTC"
            said = f"The one of {when} is newer, so it counts in place of this one."
            self.message_user(request, said, messages.WARNING)
        if not admin_of.has_view_permission(request):
            return HttpResponseRedirect(reverse("admin:sizing_benchimport_changelist"))
        return HttpResponseRedirect(reverse("admin:sizing_measurement_change", args=[measurement.pk]))

    # Columns

    @admin.display(description="import", ordering="id")
    def number(self, row: BenchImport) -> str:
        return f"#{row.pk}"

    @admin.display(description="state", ordering="state")
    def state_word(self, row: BenchImport) -> SafeString:
        state = State(row.state)
        return format_html(
            '<span class="desk-run desk-run-{}"><span aria-hidden="true">{}</span> {}</span>',
            row.state,
            shown.SIGNS[state],
            shown.NAMES[state],
        )

    @admin.display(description="what", ordering="variant__model__name")
    def what(self, row: BenchImport) -> str:
        return shown.what(row)

    @admin.display(description="what came of it")
    def outcome(self, row: BenchImport) -> str:
        if row.state == State.STORED:
            if row.measurement is None:
                return "the measurement was deleted since"
            return str(row.measurement) if row.measurement.slo_met else "SLO not met"
        if row.state == State.DONE:
            return "can be stored" if cast(Any, row).right else "cannot be stored as it is"
        return words.one_line(row.error)

    @admin.display(description="given by", ordering="requested_by__username")
    def asked_by(self, row: BenchImport) -> str:
        return shown.asked(row)
