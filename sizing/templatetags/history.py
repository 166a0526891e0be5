"""How the pages of the history say by which way something changed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django import template
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db.models import Model
from django.urls import reverse
from django.utils.html import format_html

from sizing.models import BenchImport, ClusterImport, InventoryLoad, Refresh
from sizing.models.history import DESK, way_of

register = template.Library()

_BROUGHT_BY: dict[str, type[Model]] = {
    "load": InventoryLoad,
    "import": ClusterImport,
    "bench import": BenchImport,
    "refresh": Refresh,
}
_NUMBERED = re.compile(r"(?P<what>[a-z ]+) (?P<pk>[0-9]{1,18})")


@register.simple_tag(takes_context=True)
def way(context: Mapping[str, Any], entry: LogEntry) -> str:
    """`by API`, `by load 7` with a link for those who may see the load."""
    said = way_of(entry)
    found = _NUMBERED.fullmatch(said)
    table = _BROUGHT_BY.get(found["what"]) if found else None
    if found is None or table is None or not _may_see(context, table):
        return format_html("by {}", said)
    url = reverse(f"admin:sizing_{table._meta.model_name}_change", args=[found["pk"]])
    return format_html('by <a href="{}">{}</a>', url, said)


@register.simple_tag(takes_context=True)
def changed_object(context: Mapping[str, Any], entry: LogEntry) -> str:
    """The object by name, with a link where it was not removed."""
    table = entry.content_type.model_class() if entry.content_type else None
    if entry.is_deletion() or not entry.object_id or table is None or not _may_see(context, table):
        return entry.object_repr
    return format_html('<a href="{}">{}</a>', entry.get_admin_url(), entry.object_repr)


@register.filter
def who(entry: LogEntry) -> str:
    """Who did it, with the full name where there is one."""
    name, full = entry.user.get_username(), entry.user.get_full_name()
    return f"{name} ({full})" if full and name != DESK else name


@register.filter
def what(entry: LogEntry) -> str:
    """What was done, in Django's words; those of a removal would only repeat the name."""
    return "Deleted." if entry.is_deletion() else entry.get_change_message()


def _may_see(context: Mapping[str, Any], table: type[Model]) -> bool:
    its = admin.site._registry.get(table)
    return its is not None and its.has_view_or_change_permission(context["request"])
