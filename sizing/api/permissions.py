"""Who may do what: Django's own permissions, for reading too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Model
from rest_framework.exceptions import NotAuthenticated, PermissionDenied
from rest_framework.permissions import BasePermission

if TYPE_CHECKING:  # Django REST framework's views read the settings, and these name the classes here
    from rest_framework.request import Request
    from rest_framework.views import APIView

VERBS = {"GET": "view", "HEAD": "view", "POST": "add", "PUT": "change", "PATCH": "change", "DELETE": "delete"}


def demand(request: Request, *wanted: tuple[str, type[Model]]) -> bool:
    """True if the caller has every permission, given as verb and table.

    PermissionDenied names the first that is missing; NotAuthenticated where nobody is signed in.
    """
    user = request.user
    if not user.is_authenticated:
        raise NotAuthenticated
    for verb, table in wanted:
        name = f"{table._meta.app_label}.{verb}_{table._meta.model_name}"
        if not user.has_perm(name):
            plural = table._meta.verbose_name_plural
            raise PermissionDenied(f"you may not {verb} {plural}: the permission {name} is missing")
    return True


class SignedIn(BasePermission):
    """Any signed-in user."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        return demand(request)


class ModelPermissions(BasePermission):
    """The permission on the view's table that goes with the method; OPTIONS needs sign-in only.

    A view tells its table by `permission_table`, else by `queryset`. `permission_for` maps an action to
    another verb and table.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        verb = VERBS.get(request.method or "")
        if verb is None:
            return demand(request)
        action = getattr(view, "action", None)
        special: dict[str, tuple[str, type[Model]]] = getattr(view, "permission_for", {})
        wanted = special.get(action or "")
        return demand(request, wanted or (verb, _table(view)))


def _table(view: Any) -> type[Model]:
    table: type[Model] = getattr(view, "permission_table", None) or view.queryset.model
    return table
