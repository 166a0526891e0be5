"""Users. Not among what the site registers at its start: Django's own admin of them needs a site."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.admin import UserAdmin
from django.http import HttpRequest

from sizing.admin.base import flag


class PersonAdmin(UserAdmin):  # type: ignore[type-arg]
    """Django's own, with words for what it shows as signs."""

    list_display = ("username", "email", "first_name", "last_name", "staff", "active")
    staff = flag("is_staff", "staff", "staff")
    active = flag("is_active", "active", "active", "not active")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        for name in ("last_login", "date_joined"):
            if field := form.base_fields.get(name):
                field.label = f"{name.replace('_', ' ').capitalize()} (UTC)"
        return form
