"""API tokens: made by a command, seen and revoked here. Only their hashes are stored."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from sizing.admin.base import DeskModelAdmin, moment
from sizing.admin.confirming import CONFIRMED
from sizing.domain.wording import plural
from sizing.models import ApiToken, history
from sizing.models.history import By
from sizing.services.tokens import revoke


class StandFilter(admin.SimpleListFilter):
    """By whether a token lets somebody in."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("valid", "valid"), ("expired", "expired"), ("revoked", "revoked")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        expired = Q(expiry__lte=timezone.now())
        match self.value():
            case "valid":
                return queryset.filter(~expired | Q(expiry=None), revoked_at=None)
            case "expired":
                return queryset.filter(expired, revoked_at=None)
            case "revoked":
                return queryset.exclude(revoked_at=None)
        return queryset


class ApiTokenAdmin(DeskModelAdmin):
    list_display = ("label", "user", "begins_with", "may", "made", "used", "expires", "state")
    list_filter = (StandFilter, "scope")
    search_fields = ("label", "user__username", "token_key")
    list_select_related = ("user",)
    ordering = ("-created",)
    actions = ("revoke_selected",)
    fields = (
        "label",
        "user",
        "begins_with",
        "scope",
        "created",
        "last_used_at",
        "expires",
        "revoked_at",
        "state",
    )
    readonly_fields = fields
    made = moment("created", "created")
    used = moment("last_used_at", "last used")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What still lets somebody in is revoked, and seen from then on; only what is over can go."""
        return super().has_delete_permission(request, obj) and (obj is None or obj.is_over)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return super().has_delete_permission(request)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        token = self.get_object(request, unquote(object_id))
        may = token is not None and token.revoked_at is None and self.has_revoke_permission(request)
        return super().change_view(request, object_id, form_url, {"may_revoke": may, **(extra_context or {})})

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions: dict[str, Any] = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    @admin.action(description="Revoke selected API tokens", permissions=["revoke"])
    def revoke_selected(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> HttpResponse | None:
        tokens = [token for token in queryset.select_related("user") if token.revoked_at is None]
        if not tokens:
            self.message_user(request, "Nothing to change: all selected tokens are revoked.", messages.INFO)
            return None
        if request.POST.get(CONFIRMED):
            revoked = revoke(tokens, By(history.PAGE, cast(User, request.user)))
            said = f"{plural(len(revoked), 'API token is', 'API tokens are')} revoked."
            self.message_user(request, said, messages.SUCCESS)
            return None
        return self.confirmation(
            request,
            action="revoke_selected",
            title=f"Revoke {plural(len(tokens), 'API token')}?",
            changes=[f"{token} of {token.user}" for token in tokens],
            note="Whoever uses them is refused from the next request on. This cannot be taken back.",
            button="Yes, revoke",
        )

    @admin.display(description="begins with", ordering="token_key")
    def begins_with(self, token: ApiToken) -> str:
        return f"{token.token_key}…"

    @admin.display(description="may", ordering="scope")
    def may(self, token: ApiToken) -> str:
        return "read only" if token.scope == ApiToken.Scope.READ else "full"

    @admin.display(description="expires (UTC)", ordering="expiry", empty_value="never")
    def expires(self, token: ApiToken) -> str | None:
        return None if token.expiry is None else f"{token.expiry:%Y-%m-%d %H:%M}"

    @admin.display(description="state")
    def state(self, token: ApiToken) -> str:
        if token.revoked_at is not None:
            return f"revoked {token.revoked_at:%Y-%m-%d %H:%M}"
        if token.is_over:
            return "expired"
        return "valid" if token.user.is_active else "its user is not active"


ADMINS = ((ApiToken, ApiTokenAdmin),)
