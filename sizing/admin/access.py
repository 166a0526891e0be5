"""API tokens: made by a command, seen and revoked here. Only their hashes are stored."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone

from sizing.admin.base import DeskModelAdmin, moment
from sizing.models import ApiToken


class ApiTokenAdmin(DeskModelAdmin):
    list_display = ("label", "user", "begins_with", "made", "expires")
    search_fields = ("label", "user__username", "token_key")
    list_select_related = ("user",)
    ordering = ("-created",)
    fields = ("label", "user", "begins_with", "created", "expires")
    readonly_fields = fields
    made = moment("created", "created")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions: dict[str, Any] = super().get_actions(request)
        if "delete_selected" in actions:
            function, name = actions["delete_selected"][:2]
            actions["delete_selected"] = (function, name, "Revoke selected API tokens")
        return actions

    @admin.display(description="begins with", ordering="token_key")
    def begins_with(self, token: ApiToken) -> str:
        return f"{token.token_key}…"

    @admin.display(description="expires (UTC)", ordering="expiry", empty_value="never")
    def expires(self, token: ApiToken) -> str | None:
        if token.expiry is None:
            return None
        when = f"{token.expiry:%Y-%m-%d %H:%M}"
        return f"{when} (expired)" if token.expiry <= timezone.now() else when


ADMINS = ((ApiToken, ApiTokenAdmin),)
