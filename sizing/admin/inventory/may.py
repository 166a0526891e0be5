"""Who may do what with the whole inventory: as with each table that it writes, the same as in the API."""

from __future__ import annotations

from django.http import HttpRequest

from sizing.services.inventory_loads import TABLES


def _has(request: HttpRequest, *verbs: str) -> bool:
    wanted = [f"sizing.{verb}_{table._meta.model_name}" for verb in verbs for table in TABLES]
    return request.user.has_perms(wanted)


def may_load(request: HttpRequest, *, replace: bool = False) -> bool:
    """Whether the caller may write all that a load writes; with `replace` also remove it."""
    return _has(request, "add", "change", *(["delete"] if replace else []))


def may_look(request: HttpRequest) -> bool:
    """Whether the caller may see all of the inventory."""
    return _has(request, "view") or may_load(request)
