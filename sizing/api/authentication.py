"""Bearer tokens."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from knox.auth import TokenAuthentication
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed

__all__ = ["BearerAuthentication", "SessionAuthentication"]


class BearerAuthentication(TokenAuthentication):
    """knox's token authentication; what cannot be a token at all is a 401 too, whatever its bytes."""

    def authenticate_credentials(self, token: bytes) -> tuple[Any, Any]:
        if not token.isascii() or b"\0" in token:
            raise AuthenticationFailed("Invalid token.")
        user, auth_token = super().authenticate_credentials(token)
        return user, auth_token

    def _cleanup_token(self, auth_token: Any) -> bool:
        """Whether the token has expired. An expired one stays to be seen, and no other is looked at."""
        return auth_token.expiry is not None and bool(auth_token.expiry < timezone.now())


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the OpenAPI document describes the tokens."""

    target_class = "sizing.api.authentication.BearerAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "llmgw_...",
            "description": "A token made by `manage.py create_token USER --label L`.",
        }
