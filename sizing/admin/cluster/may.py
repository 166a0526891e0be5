"""Who may do what with the cluster: as with the tables that an import writes."""

from __future__ import annotations

from django.http import HttpRequest

TABLES = ("node", "gpu", "servedmodel", "variant", "replica")


def may_import(request: HttpRequest) -> bool:
    """Whether the caller may change all that an import changes."""
    wanted = [f"sizing.{verb}_{table}" for verb in ("add", "change", "delete") for table in TABLES]
    return request.user.has_perms(wanted)


def may_look(request: HttpRequest) -> bool:
    """Whether the caller may see what the cluster tells, which names rows of all of these tables."""
    return request.user.has_perms([f"sizing.view_{table}" for table in TABLES]) or may_import(request)
