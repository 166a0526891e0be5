"""Inventory files: bring one, look at what it changes, then load or discard it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.csrf import csrf_exempt

from sizing.admin.base import moment
from sizing.admin.imports.form import capitalized
from sizing.admin.inventory import shown
from sizing.admin.inventory.giving import give
from sizing.admin.inventory.may import may_load, may_look
from sizing.admin.measured import words
from sizing.admin.page import PageAdmin
from sizing.models import InventoryLoad
from sizing.services import inventory, inventory_loads
from sizing.services.errors import DeskError

State = InventoryLoad.State


class StateFilter(admin.SimpleListFilter):
    """By state, in the words that the list says it in."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        return list(shown.NAMES.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(state=self.value()) if self.value() else queryset


class InventoryLoadAdmin(PageAdmin):
    """Who may change all that a load writes may load; who may view all of it may look."""

    add_label = "Load a file"
    list_display = ("number", "state_word", "name", "outcome", "asked_by", "brought")
    list_filter = (StateFilter, "trigger")
    search_fields = ("name", "requested_by__username")
    list_select_related = ("requested_by",)
    ordering = ("-created_at", "-id")
    brought = moment("created_at", "brought")

    def get_queryset(self, request: HttpRequest) -> QuerySet[InventoryLoad]:
        return super().get_queryset(request).select_related("requested_by").defer("body")

    def for_list(self, queryset: QuerySet[InventoryLoad]) -> QuerySet[InventoryLoad]:
        return queryset.defer("body", "changes", "warnings")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return ()  # the page says it all in its own words

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may_load(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Of many changes the load's own row is the only one that tells; what waits is discarded instead.
        return bool(request.user.is_superuser)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_look(request)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        acts = {"load": self.bring, "again": self.look_again, "discard": self.discard}
        return [
            path("add/", view(csrf_exempt(partial(give, self))), name="sizing_inventoryload_add"),
            path("export/", view(self.export), name="sizing_inventoryload_export"),
            *(
                path(f"<int:pk>/{word}/", view(self._act(act)), name=f"sizing_inventoryload_{word}")
                for word, act in acts.items()
            ),
            *super().get_urls(),
        ]

    # Looking at them

    def page_part(self, request: HttpRequest, row: InventoryLoad) -> dict[str, Any]:
        """What the page says of a load."""
        state = State(row.state)
        waits = state == State.PREVIEW
        errors = shown.errors_of(row)
        may_act = may_load(request, replace=row.replace)
        return {
            "title": f"Inventory load {row.pk}: {words.one_line(row.name, 60)}",
            "subtitle": None,
            "row": row,
            "badge": shown.NAMES[state],
            "sign": shown.SIGNS[state],
            "look": shown.LOOKS[state],
            "sentence": shown.sentence(row),
            "wrong": errors[: shown.ERRORS_SHOWN],
            "more_wrong": max(len(errors) - shown.ERRORS_SHOWN, 0),
            "changes": shown.changes_of(row.changes),
            "asked": shown.asked(row),
            "may_load": waits and may_act and inventory_loads.number_of_changes(row) > 0,
            "may_look_again": waits and may_act,
            "may_discard": waits and self.has_add_permission(request),
            "may_give": self.has_add_permission(request),
            # To discard it is the way; what was loaded is kept as history.
            "show_delete": False,
        }

    def export(self, request: HttpRequest) -> HttpResponse:
        """The whole inventory as a file that can be loaded again; `?as=json` for JSON."""
        if not may_look(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        kind = "json" if request.GET.get("as") == "json" else "yaml"
        name = f"inventory-{timezone.now():%Y-%m-%d}.{kind}"
        return HttpResponse(
            inventory.dump_text(kind),
            content_type=f"application/{kind}; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponseRedirect:
        said = (
            f"There is no inventory load {words.one_line(str(object_id), 20)} any more: it was discarded,"
            " or not loaded within a day. Bring the file again."
        )
        self.message_user(request, said, messages.WARNING)
        return HttpResponseRedirect(reverse("admin:sizing_inventoryload_changelist"))

    def _url(self, pk: int) -> str:
        return reverse("admin:sizing_inventoryload_change", args=[pk])

    # What is done with them

    def _act(self, act: Callable[[HttpRequest, InventoryLoad], HttpResponse]) -> Callable[..., HttpResponse]:
        """An act on a file, by POST, for those who may load it; a refusal is said on its page."""

        def view(request: HttpRequest, pk: int) -> HttpResponse:
            if not self.has_add_permission(request):
                raise PermissionDenied
            if request.method != "POST":
                return HttpResponseNotAllowed(["POST"])
            row = self.get_object(request, str(pk))
            if not isinstance(row, InventoryLoad):
                return self._get_obj_does_not_exist_redirect(request, self.opts, str(pk))
            try:
                return act(request, row)
            except DeskError as refusal:
                self.message_user(request, f"{capitalized(refusal.message)}.", messages.ERROR)
                return HttpResponseRedirect(self._url(pk))

        return view

    def bring(self, request: HttpRequest, row: InventoryLoad) -> HttpResponse:
        if not may_load(request, replace=row.replace):
            raise PermissionDenied
        try:
            done = inventory_loads.bring(row.pk, cast(User, request.user))
        except inventory.ChangedMeanwhileError:
            said = (
                "Not loaded: the inventory changed since you looked, and the load would do something else"
                " now. See below what it would do, then load it."
            )
            self.message_user(request, said, messages.WARNING)
            return HttpResponseRedirect(self._url(row.pk))
        if done.state == State.LOADED:
            self.log_change(request, row, [{"changed": {"fields": ["loaded"]}}])
            said = f"The file is loaded: {inventory_loads.summary(done)}."
            self.message_user(request, said, messages.SUCCESS)
        else:
            said = "Not loaded: the inventory changed since you looked, and the file does not fit it now."
            self.message_user(request, said, messages.ERROR)
        return HttpResponseRedirect(self._url(row.pk))

    def look_again(self, request: HttpRequest, row: InventoryLoad) -> HttpResponse:
        inventory_loads.look_again(row.pk)
        self.message_user(request, "Compared with the inventory as it is now.", messages.SUCCESS)
        return HttpResponseRedirect(self._url(row.pk))

    def discard(self, request: HttpRequest, row: InventoryLoad) -> HttpResponse:
        inventory_loads.discard(row.pk)
        self.log_deletions(request, cast(Any, [row]))
        said = f"Inventory load {row.pk} is discarded; nothing was changed."
        self.message_user(request, said, messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:sizing_inventoryload_changelist"))

    # Columns

    @admin.display(description="load", ordering="id")
    def number(self, row: InventoryLoad) -> str:
        return f"#{row.pk}"

    @admin.display(description="state", ordering="state")
    def state_word(self, row: InventoryLoad) -> SafeString:
        state = State(row.state)
        return format_html(
            '<span class="desk-run desk-run-{}"><span aria-hidden="true">{}</span> {}</span>',
            shown.LOOKS[state],
            shown.SIGNS[state],
            shown.NAMES[state],
        )

    @admin.display(description="what came of it")
    def outcome(self, row: InventoryLoad) -> str:
        if row.state == State.REFUSED:
            return shown.sentence(row)
        how = "; what it leaves out is removed" if row.replace else ""
        return f"{inventory_loads.summary(row)}{how}"

    @admin.display(description="brought by", ordering="requested_by__username")
    def asked_by(self, row: InventoryLoad) -> str:
        return shown.asked(row)
