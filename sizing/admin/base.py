"""What every list and form of the desk shares: bounds, clear refusals, confirmed actions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import ValidationError
from django.db.models import Count, IntegerField, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.text import capfirst

from sizing.admin.choosing import SearchedSelect
from sizing.admin.confirming import CONFIRMED, Named, named
from sizing.admin.deleting import shortened, without_parts
from sizing.admin.lists import DeskChangeList, csv_view
from sizing.admin.meanwhile import DeletingAdmin, SavingAdmin
from sizing.admin.meanwhile.saving import SaveRefusedError
from sizing.admin.told import ToldAdmin
from sizing.inventory.document import Findings
from sizing.models.locking import inventory_lock
from sizing.services.editing.holders import holders_of
from sizing.templatetags.desk import NOTHING, num

NAMES_SHOWN = 5
CHANGES_SHOWN = 50
DELETED_AT_ONCE = 500
WARNINGS_SHOWN = 5
LINES_AT_MOST = 250
"""Of a form: each line costs time, also an empty one."""

_LINE = re.compile(r"\w+-[0-9]+-", re.ASCII)
LABELS = {"gpus": "GPUs", "slo_met": "SLO met", "uuid": "UUID"}


class PlainNumber(forms.NumberInput):
    """A decimal without the zeros that its column has behind it."""

    def format_value(self, value: Any) -> str | None:
        if isinstance(value, Decimal) and value.is_finite():
            return f"{value.normalize():f}"
        text: str | None = super().format_value(value)
        return text


class DeskModelAdmin(SavingAdmin, DeletingAdmin, ToldAdmin):
    list_per_page = 100
    list_max_show_all = 200
    show_full_result_count = False
    empty_value_display = NOTHING

    label_related: tuple[str, ...] = ()  # what `autocomplete_label` follows

    def for_list(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Add to a list's rows what its columns show."""
        return queryset

    def autocomplete_label(self, obj: Any) -> str:
        """How this object is offered where another one refers to it."""
        return str(obj)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        title = capfirst(str(self.opts.verbose_name_plural))
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return DeskChangeList

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(partial(csv_view, self))
        name = f"{self.opts.app_label}_{self.opts.model_name}_csv"
        return [path("csv/", view, name=name), *super().get_urls()]

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name in self.get_autocomplete_fields(request):
            kwargs.setdefault("widget", SearchedSelect(db_field, self.admin_site, using=kwargs.get("using")))
        field: Any = super().formfield_for_foreignkey(db_field, request, **kwargs)
        related = self.admin_site._registry.get(db_field.remote_field.model)
        if field is not None and isinstance(related, DeskModelAdmin):
            field.label_from_instance = related.autocomplete_label
            if related.label_related:
                field.queryset = field.queryset.select_related(*related.label_related)
        return field

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        return plain(super().formfield_for_dbfield(db_field, request, **kwargs))

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """What the address fills in beforehand; what its field cannot hold is left out."""
        given: dict[str, Any] = super().get_changeform_initial_data(request)
        for field in self.opts.concrete_fields:
            if field.name in given:
                try:
                    value = field.to_python(given[field.name])
                except ValidationError:
                    del given[field.name]
                else:
                    if isinstance(value, datetime):  # its widget takes no text
                        given[field.name] = value
        return given

    # Saving

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change=change, **{"labels": LABELS, **kwargs})

    # Deleting

    def why_kept(self, objs: Iterable[Any]) -> str | None:
        """Why these objects cannot be deleted, in one sentence; None where they can."""
        for obj in objs:
            if held := holders_of(obj):
                return f"{obj} is in use by {held}."
        return None

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[Any, Any], set[Any], list[Any]]:
        number = objs.count() if isinstance(objs, QuerySet) else len(objs)
        if number > DELETED_AT_ONCE:
            refusal = (
                f"{num(number)} are selected; at most {DELETED_AT_ONCE} can be deleted at once."
                " `manage.py load_inventory FILE --replace` removes any number."
            )
            return [], {}, set(), [refusal]
        kept = self.why_kept(objs)
        if kept:
            return [], {}, set(), [kept]
        deleted, counts, lacking, protected = super().get_deleted_objects(objs, request)
        return shortened(without_parts(deleted)), dict(counts), set(lacking), shortened(protected)

    # Actions

    def confirmation(
        self,
        request: HttpRequest,
        *,
        action: str,
        title: str,
        changes: Sequence[str],
        note: str,
        button: str,
        hidden: int = 0,
        effects: Sequence[str] = (),
        of: Named | None = None,
    ) -> HttpResponse:
        """A page that shows what the action will change, and does it when it is posted back.

        hidden: how many more it changes than `changes` has. effects: what comes of it for others. of: the
        rows, where they are changed only as named here; that something else was confirmed is said.
        """
        if of is not None and request.POST.get(CONFIRMED):
            self.message_user(request, of.differs(request), messages.WARNING)
        return TemplateResponse(
            request,
            "admin/desk_confirm_action.html",
            {
                **self.admin_site.each_context(request),
                "title": title,
                "subtitle": None,
                "opts": self.opts,
                "changes": changes[:CHANGES_SHOWN],
                "hidden": max(len(changes) - CHANGES_SHOWN, 0) + hidden,
                "effects": effects[:CHANGES_SHOWN],
                "note": note,
                "action": action,
                "button": button,
                "checkbox_name": ACTION_CHECKBOX_NAME,
                "confirmed": of.digest if of else "yes",
                "named": of.carried if of else (),
                "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
                "select_across": request.POST.get("select_across", "0"),
                "media": self.media,
            },
        )

    def change_all(
        self,
        request: HttpRequest,
        changing: QuerySet[Any],
        values: dict[str, Any],
        *,
        done: str,
        line: Callable[[Any], str],
        **page: Any,
    ) -> HttpResponse | None:
        """Give all of these rows the values, once somebody has confirmed it; `page` as in `confirmation`.

        done: what they are then, as in `cordoned`. line: what changes of one of them. None where it is done.
        Where it would change other rows than were confirmed, it changes none and asks again.
        """
        if request.POST.get(CONFIRMED):
            with inventory_lock():
                rows = list(changing) if named(changing).confirmed(request) else []
                if rows:
                    self.model._default_manager.filter(pk__in=changing.order_by().values("pk")).update(
                        **values
                    )
                    self.log_all(request, rows, *values)
            if rows:
                one, many = self.opts.verbose_name, self.opts.verbose_name_plural
                said = f"{num(len(rows))} {f'{one} is' if len(rows) == 1 else f'{many} are'} {done} now."
                self.message_user(request, said, messages.SUCCESS)
                return None
        of = named(changing)
        shown = list(self.for_list(changing)[:CHANGES_SHOWN])
        changes = [line(row) for row in shown]
        hidden = len(of.names) - len(shown)
        return self.confirmation(request, changes=changes, hidden=hidden, of=of, **page)

    def log_all(self, request: HttpRequest, objs: Sequence[Model], *fields: str) -> None:
        """Write one line of history for each of the objects that an action changed."""
        message = [{"changed": {"fields": list(fields)}}]
        LogEntry.objects.log_actions(request.user.pk or 0, objs, CHANGE, message)


class HoldingAdmin(DeskModelAdmin):
    """For tables that say who holds what: a save that the holding rules refuse is a form error."""

    def check_held(self, obj: Any, form: Any) -> Findings:
        """What is wrong or odd about what is held, now that `obj` is written."""
        raise NotImplementedError

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        found = self.check_held(form.instance, form)
        if found.errors:
            raise SaveRefusedError([str(problem) for problem in found.errors])
        for warning in found.warnings[:WARNINGS_SHOWN]:
            self.message_user(request, str(warning), messages.WARNING)
        if len(found.warnings) > WARNINGS_SHOWN:
            more = len(found.warnings) - WARNINGS_SHOWN
            self.message_user(request, f"and {more} more warnings", messages.WARNING)


class DeskLines(admin.TabularInline):  # type: ignore[type-arg]
    """Lines of one object's form."""

    extra = 0

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        most = min(LINES_AT_MOST, _lines_sent(request)) if request.method == "POST" else LINES_AT_MOST
        given = {"labels": LABELS, "max_num": most, "absolute_max": most, **kwargs}
        return super().get_formset(request, obj, **given)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        return plain(super().formfield_for_dbfield(db_field, request, **kwargs))


def _lines_sent(request: HttpRequest) -> int:
    """How many lines a form has, and not how many it says that it has."""
    return len({found[0] for name in request.POST if (found := _LINE.match(name))})


def plain(field: Any) -> Any:
    """The form field, with a decimal shown plainly."""
    if isinstance(field, forms.DecimalField):
        field.widget = PlainNumber(field.widget.attrs)
    return field


def flag(field: str, description: str, yes: str, no: str = NOTHING) -> Any:
    """A list's column that says a boolean in words."""

    @admin.display(description=description, ordering=field)
    def words(obj: Any) -> str:
        return yes if getattr(obj, field) else no

    return staticmethod(words)


def moment(field: str, description: str) -> Any:
    """A list's column of times; its head says the zone, once for all of them."""

    @admin.display(description=f"{description} (UTC)", ordering=field)
    def time(obj: Any) -> str:
        value = getattr(obj, field)
        return f"{value:%Y-%m-%d %H:%M}" if value else NOTHING

    return staticmethod(time)


def counted(queryset: QuerySet[Any], outer: str) -> Coalesce:
    """How many rows of `queryset` have the outer row as `outer`, as an annotation without a join."""
    counts = queryset.filter(**{outer: OuterRef("pk")}).order_by().values(outer).annotate(n=Count("pk"))
    return Coalesce(Subquery(counts.values("n"), output_field=IntegerField()), 0)
