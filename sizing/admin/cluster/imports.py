"""Imports of the cluster: bring a list, look at what it changes, then import or discard it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.csrf import csrf_exempt

from sizing.admin.base import moment
from sizing.admin.cluster import shown
from sizing.admin.cluster.giving import give
from sizing.admin.cluster.may import may_import, may_look
from sizing.admin.imports.form import capitalized
from sizing.admin.measured import words
from sizing.admin.page import PageAdmin
from sizing.models import ClusterImport
from sizing.services import cluster_imports
from sizing.services.errors import DeskError
from sizing.syncing import state as sync_state
from sizing.syncing.told import summary

State = ClusterImport.State
ACTIVE = {State(state) for state in ClusterImport.ACTIVE}


class StateFilter(admin.SimpleListFilter):
    """By state, in the words that the list says it in."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        return list(shown.NAMES.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(state=self.value()) if self.value() else queryset


class ClusterImportAdmin(PageAdmin):
    """Who may change all that an import writes may import; who may view all of it may look."""

    add_label = "Import the cluster"
    list_display = ("number", "state_word", "name", "outcome", "asked_by", "queued")
    list_filter = (StateFilter, "trigger")
    search_fields = ("name", "requested_by__username")
    list_select_related = ("requested_by",)
    ordering = ("-queued_at", "-id")
    queued = moment("queued_at", "brought")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ClusterImport]:
        return super().get_queryset(request).select_related("requested_by").defer("body")

    def for_list(self, queryset: QuerySet[ClusterImport]) -> QuerySet[ClusterImport]:
        return queryset.defer("body", "report", "changes")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return ()  # the page says it all in its own words

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may_import(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Of many changes the import's own row is the only one that tells; what waits is discarded instead.
        return bool(request.user.is_superuser)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_look(request)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        acts = {
            "import": self.bring,
            "partial": self.take_as_incomplete,
            "cancel": self.cancel,
            "discard": self.discard,
        }
        return [
            path("add/", view(csrf_exempt(partial(give, self))), name="sizing_clusterimport_add"),
            path("<int:pk>/live/", view(self.live), name="sizing_clusterimport_live"),
            *(
                path(f"<int:pk>/{word}/", view(self._act(act)), name=f"sizing_clusterimport_{word}")
                for word, act in acts.items()
            ),
            *super().get_urls(),
        ]

    # Looking at them

    def page_part(self, request: HttpRequest, row: ClusterImport) -> dict[str, Any]:
        """What the page says of an import; the same whether it is opened or followed."""
        state = State(row.state)
        report = row.report
        read = state == State.READ
        refused = report.get("refusals", []) if read else []
        refusals = [*refused, *(sync_state.refusals() if read else ())]
        may_act = self.has_add_permission(request)
        reading = state == State.RUNNING and not row.cancel_requested
        changes = shown.changes_of(row.changes)
        return {
            "title": f"Cluster import {row.pk}: {words.one_line(row.name, 60)}",
            "subtitle": None,
            "row": row,
            "active": state in ACTIVE,
            "badge": shown.NAMES[state],
            "sign": shown.SIGNS[state],
            "look": shown.LOOKS[state],
            "sentence": shown.sentence(row, timezone.now()),
            "error": words.one_line(row.error, 500),
            "refusals": refusals,
            "warnings": report.get("warnings", {}),
            "report": report,
            "changes": changes,
            "asked": shown.asked(row),
            "may_import": may_act and read and not refusals,
            "may_take_as_incomplete": may_act and bool(refused) and not row.partial,
            "may_cancel": may_act and (reading or state == State.IMPORTING),
            "may_discard": may_act and state in (State.QUEUED, State.READ),
            "key": f"{row.state}-{row.attempts}-{row.partial}-{row.cancel_requested}",
            # To discard it is the way; what was imported is kept as history.
            "show_delete": False,
        }

    def live(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The parts of an import's page that change, for the script that follows it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = self.get_object(request, str(pk))
        if not isinstance(row, ClusterImport):
            raise Http404
        context = {**self.page_part(request, row), "opts": self.opts}
        return TemplateResponse(request, "admin/sizing/clusterimport/live.html", context)

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponseRedirect:
        said = f"There is no cluster import {words.one_line(str(object_id), 20)} any more: it was discarded."
        self.message_user(request, said, messages.WARNING)
        return HttpResponseRedirect(reverse("admin:sizing_clusterimport_changelist"))

    def _url(self, pk: int) -> str:
        return reverse("admin:sizing_clusterimport_change", args=[pk])

    # What is done with them

    def _act(self, act: Callable[[HttpRequest, ClusterImport], HttpResponse]) -> Callable[..., HttpResponse]:
        """An act on an import, by POST, for those who may import; a refusal is said on its page."""

        def view(request: HttpRequest, pk: int) -> HttpResponse:
            if not self.has_add_permission(request):
                raise PermissionDenied
            if request.method != "POST":
                return HttpResponseNotAllowed(["POST"])
            row = self.get_object(request, str(pk))
            if not isinstance(row, ClusterImport):
                return self._get_obj_does_not_exist_redirect(request, self.opts, str(pk))
            try:
                return act(request, row)
            except DeskError as refusal:
                self.message_user(request, f"{capitalized(refusal.message)}.", messages.ERROR)
                return HttpResponseRedirect(self._url(pk))

        return view

    def bring(self, request: HttpRequest, row: ClusterImport) -> HttpResponse:
        done = cluster_imports.bring(row.pk, cast(User, request.user))
        self.log_change(request, row, [{"changed": {"fields": ["imported"]}}])
        if done.state == State.DONE:
            said = f"The list is imported: {summary(done.changes)}."
            self.message_user(request, said, messages.SUCCESS)
        return HttpResponseRedirect(self._url(row.pk))

    def take_as_incomplete(self, request: HttpRequest, row: ClusterImport) -> HttpResponse:
        """Look at it once more: what it leaves out is to stay."""
        cluster_imports.look_again(row.pk, partial=True)
        return HttpResponseRedirect(self._url(row.pk))

    def cancel(self, request: HttpRequest, row: ClusterImport) -> HttpResponse:
        cluster_imports.cancel(row.pk)
        return HttpResponseRedirect(self._url(row.pk))

    def discard(self, request: HttpRequest, row: ClusterImport) -> HttpResponse:
        cluster_imports.discard(row.pk)
        self.log_deletions(request, cast(Any, [row]))
        said = f"Cluster import {row.pk} is discarded; nothing was changed."
        self.message_user(request, said, messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:sizing_clusterimport_changelist"))

    # Columns

    @admin.display(description="import", ordering="id")
    def number(self, row: ClusterImport) -> str:
        return f"#{row.pk}"

    @admin.display(description="state", ordering="state")
    def state_word(self, row: ClusterImport) -> SafeString:
        state = State(row.state)
        return format_html(
            '<span class="desk-run desk-run-{}"><span aria-hidden="true">{}</span> {}</span>',
            shown.LOOKS[state],
            shown.SIGNS[state],
            shown.NAMES[state],
        )

    @admin.display(description="what came of it")
    def outcome(self, row: ClusterImport) -> str:
        return words.one_line(row.error or row.message)

    @admin.display(description="brought by", ordering="requested_by__username")
    def asked_by(self, row: ClusterImport) -> str:
        return shown.asked(row)
