"""What every list does beside showing rows: say what to do where it is empty, and give itself as a table."""

from __future__ import annotations

import re
from datetime import datetime
from html import unescape
from typing import Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import display_for_field, label_for_field, lookup_field
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import strip_tags
from django.utils.text import capfirst

from sizing.admin.empty import Empty, empty_state
from sizing.services import sheets
from sizing.templatetags.desk import NOTHING, THIN

ROWS_AT_ONCE = 2000
_PIECE = re.compile(r"<(br|span|small|li|p|div|progress)\b")
"""Where another piece of a cell begins, which a space keeps apart from the one before it."""
_NUMBER = re.compile(r"[-−]?[0-9]{1,3}(,[0-9]{3})*(\.[0-9]+)?")


class DeskChangeList(ChangeList):
    """A list that reads what its columns need in a constant number of queries."""

    empty: Empty | None = None
    csv_url = ""

    def complete(self, request: HttpRequest, rows: list[Any]) -> None:
        """Give the rows that are shown what their columns say beside the row itself."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        # What the columns show comes first, for the list may be ordered by it.
        plain = self.root_queryset
        self.root_queryset = self.model_admin.for_list(plain)  # type: ignore[attr-defined]
        try:
            return super().get_queryset(request, exclude_parameters)
        finally:
            self.root_queryset = plain

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        narrowed = bool(self.query or self.get_filters_params())
        # Nothing is left out: so no "Show all".
        if not narrowed:
            self.full_result_count = self.result_count
        if not self.result_count:
            self.empty = empty_state(request, self.model_admin, narrowed)
            self.show_admin_actions = False
        elif not self.is_popup:
            self.csv_url = reverse(_csv_name(self.model_admin)) + self.get_query_string(remove=["p", "all"])


def _csv_name(model_admin: Any) -> str:
    opts = model_admin.opts
    return f"admin:{opts.app_label}_{opts.model_name}_csv"


def csv_view(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """The list as it is searched, filtered and ordered, all pages of it, as a table for a spreadsheet."""
    if not model_admin.has_view_or_change_permission(request):
        raise PermissionDenied
    if request.method not in ("GET", "HEAD"):
        return HttpResponseNotAllowed(["GET", "HEAD"])
    try:
        found = model_admin.get_changelist_instance(request)
    except IncorrectLookupParameters:
        # The list says what is wrong with the address.
        return HttpResponseRedirect(f"{reverse(_csv_name(model_admin).replace('_csv', '_changelist'))}?e=1")
    names = list(model_admin.get_list_display(request))
    head = [capfirst(str(label_for_field(name, model_admin.model, model_admin))) for name in names]
    rows = list(found.queryset.iterator(chunk_size=ROWS_AT_ONCE))
    found.complete(request, rows)
    table = sheets.table(head, ([_cell(model_admin, row, name) for name in names] for row in rows))
    file_name = f"{model_admin.opts.verbose_name_plural}-{timezone.now():%Y-%m-%d}.csv".replace(" ", "-")
    return HttpResponse(
        table,
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{file_name}"'},
    )


def _cell(model_admin: Any, row: Any, name: str) -> str | int | float | None:
    """What a list's column says of a row: plain text, or a number to reckon with."""
    try:
        field, attribute, value = lookup_field(name, row, model_admin)
    except ObjectDoesNotExist:
        return None
    if value is None:
        empty = getattr(attribute, "empty_value_display", None)
        return str(empty) if empty else None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return value
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if field is not None and field.choices:
        return str(display_for_field(value, field, ""))
    text = " ".join(unescape(strip_tags(_PIECE.sub(r" \g<0>", str(value)))).replace(THIN, " ").split())
    if text == NOTHING:
        return None
    if _NUMBER.fullmatch(text):
        plain = text.replace(",", "").replace("−", "-")
        return float(plain) if "." in plain else int(plain)
    return text
