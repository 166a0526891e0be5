"""Who changed what, on the whole desk: the newest first, by who, kind and time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.utils.text import capfirst

from sizing.admin.base import LABELS

ON_A_PAGE = 50


class HistoryForm(forms.Form):
    """What part of the history is asked for."""

    who = forms.CharField(
        required=False,
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    kind = forms.ChoiceField(required=False)
    since = forms.DateField(
        required=False,
        label="Since (UTC)",
        widget=forms.DateInput(attrs={"type": "date", "class": "vTextField"}, format="%Y-%m-%d"),
        error_messages={"invalid": "Give a day, such as 2026-11-02."},
    )
    before = forms.IntegerField(required=False, min_value=1, max_value=2**62, widget=forms.HiddenInput)

    def __init__(self, given: Mapping[str, Any], kinds: Mapping[str, str]) -> None:
        super().__init__(given, label_suffix="")
        field = self.fields["kind"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", "all kinds"), *kinds.items()]
        field.error_messages["invalid_choice"] = "There is no such kind, or you may not view it."

    def entries(self, types: Mapping[str, ContentType]) -> QuerySet[LogEntry]:
        """The entries that are asked for, the newest first; of the kinds that may be seen."""
        asked = self.cleaned_data
        kind = asked.get("kind")
        shown = [types[kind]] if kind else list(types.values())
        # By id and not by time, so that any page is read by the key: they are written in order.
        found = LogEntry.objects.filter(content_type__in=shown).order_by("-id")
        if who := asked.get("who"):
            found = found.filter(user__username__iexact=who)
        if since := asked.get("since"):
            found = found.filter(action_time__gte=datetime(since.year, since.month, since.day, tzinfo=UTC))
        if before := asked.get("before"):
            found = found.filter(pk__lt=before)
        return found.select_related("user", "content_type")


def history_view(request: HttpRequest) -> HttpResponse:
    """The page. Any of the staff may ask; each sees entries of what they may view."""
    if request.method not in ("GET", "HEAD"):
        return HttpResponseNotAllowed(["GET", "HEAD"])
    tables = _seen(request)
    found = ContentType.objects.get_for_models(*tables.values()) if tables else {}
    types = {name: found[table] for name, table in tables.items()}
    names = {name: capfirst(_plural(table)) for name, table in tables.items()}
    form = HistoryForm(request.GET, names)
    entries = list(form.entries(types)[: ON_A_PAGE + 1]) if form.is_valid() else []
    asked = {name: value for name, value in request.GET.items() if name in ("who", "kind", "since") and value}
    older = ""
    if len(entries) > ON_A_PAGE:
        entries.pop()
        older = "?" + urlencode({**asked, "before": entries[-1].pk})
    context = {
        **admin.site.each_context(request),
        "title": "History",
        "subtitle": None,
        "form": form,
        "entries": entries,
        "older": older,
        "newest": ("?" + urlencode(asked) if asked else request.path) if request.GET.get("before") else "",
        "asked": bool(asked),
    }
    return TemplateResponse(request, "admin/history.html", context)


def _seen(request: HttpRequest) -> dict[str, type[Model]]:
    """What the caller may view, by the names that the page gives the kinds."""
    return {
        f"{table._meta.app_label}.{table._meta.model_name}": table
        for table, its in sorted(admin.site._registry.items(), key=lambda item: _plural(item[0]).casefold())
        if its.has_view_or_change_permission(request)
    }


def _plural(table: type[Model]) -> str:
    words = str(table._meta.verbose_name_plural)
    return LABELS.get(words, words)
