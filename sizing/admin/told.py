"""What the history tells of a page's changes beside what Django writes of them itself."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.http import HttpRequest

from sizing.models import history
from sizing.models.history import By
from sizing.services.editing.parts import removals


class ToldAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Tells also of an object's parts, and of what goes with it; and of which model a variant is."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Lines that have a history of their own are told there too."""
        lines = [one for one in formsets if one.model in self.admin_site._registry]
        gone = [history.removed(line.instance) for one in lines for line in one.deleted_forms]
        super().save_related(request, form, formsets, change)
        events = [history.added(new) for one in lines for new in one.new_objects]
        for one in lines:
            for row, fields in one.changed_objects:
                events.append(history.changed(row, *(name.replace("_", " ") for name in fields)))
        history.write(By(history.PAGE, cast(User, request.user)), [*events, *gone])

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return _named_fully(super().log_addition(request, obj, message), obj)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return _named_fully(super().log_change(request, obj, message), obj)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """What goes with an object is told too."""
        history.write(By(history.PAGE, cast(User, request.user)), removals(queryset))


def _named_fully(entry: LogEntry, obj: Any) -> LogEntry:
    """An entry of the history under the name that tells the object also once it is gone."""
    name = history.name_of(obj)[:200]
    if entry.object_repr != name:
        entry.object_repr = name
        entry.save(update_fields=["object_repr"])
    return entry
