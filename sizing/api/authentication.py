"""Bearer tokens."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from knox.auth import TokenAuthentication
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from sizing.models import ApiToken
from sizing.services import token_uses

__all__ = ["BearerAuthentication", "SessionAuthentication"]


class BearerAuthentication(TokenAuthentication):
    """knox's token authentication; what cannot be a token at all is a 401 too, whatever its bytes."""

    def authenticate_credentials(self, token: bytes) -> tuple[Any, Any]:
        if not token.isascii() or b"\0" in token:
            raise AuthenticationFailed("Invalid token.")
        user, auth_token = super().authenticate_credentials(token)
        token_uses.note(auth_token)
        return user, auth_token

    def _cleanup_token(self, auth_token: Any) -> bool:
        """Whether the token is over. Such a one stays to be seen, and no other is looked at."""
        return bool(auth_token.is_over)


def check_scope(request: Request) -> None:
    """PermissionDenied where the caller's token may read only, and this would do more."""
    token = request.auth
    if (
        isinstance(token, ApiToken)
        and token.scope == ApiToken.Scope.READ
        and request.method not in SAFE_METHODS
    ):
        raise PermissionDenied(f"this token may only read (GET, HEAD, OPTIONS), not {request.method}")


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the OpenAPI document describes the tokens."""

    target_class = "sizing.api.authentication.BearerAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "llmgw_...",
            "description": (
                "A token made by `manage.py create_token USER --label L`; one made with `--read-only` may"
                " GET, HEAD and OPTIONS alone."
            ),
        }
