"""Deleting what was confirmed, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib import admin, messages
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.response import TemplateResponse

from sizing.models.locking import inventory_lock

GOES = "desk_goes"
"""The parameter in which a confirmation tells what it showed, as a digest."""

DIFFERENT = (
    "Nothing is deleted: since you looked, this or what goes with it was changed. See it as it is now."
)


class GoesDifferentlyError(Exception):
    """Something else would be deleted than was confirmed."""


class DeletingAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """An admin whose confirmations know what they showed: of one object, or of those marked in the list."""

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[Any, Any], set[Any], list[Any]]:
        found: tuple[list[Any], dict[Any, Any], set[Any], list[Any]] = super().get_deleted_objects(
            objs, request
        )
        request.goes = _digest(objs, found[0], found[1])  # type: ignore[attr-defined]
        return found

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if request.method != "POST":
            return super().delete_view(request, object_id, extra_context)
        try:
            with inventory_lock():
                return super().delete_view(request, object_id, extra_context)
        except (GoesDifferentlyError, IntegrityError):
            self._ask_again(request)
        request.POST = QueryDict()
        return super().delete_view(request, object_id, extra_context)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        if not (request.method == "POST" and request.POST.get("post")):
            return self._with_digest(request, super().changelist_view(request, extra_context))
        try:
            with inventory_lock():
                return super().changelist_view(request, extra_context)
        except (GoesDifferentlyError, IntegrityError):
            self._ask_again(request)
        again = request.POST.copy()
        del again["post"]
        request.POST = again  # type: ignore[assignment]
        return self._with_digest(request, super().changelist_view(request, extra_context))

    def render_delete_form(self, request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
        context["goes"] = getattr(request, "goes", "")
        return super().render_delete_form(request, context)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        _check(request)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        _check(request)
        super().delete_queryset(request, queryset)

    def _ask_again(self, request: HttpRequest) -> None:
        self.message_user(request, DIFFERENT, messages.WARNING)

    def _with_digest(self, request: HttpRequest, response: Any) -> Any:
        if isinstance(response, TemplateResponse) and response.context_data is not None:
            response.context_data["goes"] = getattr(request, "goes", "")
        return response


def _check(request: HttpRequest) -> None:
    confirmed = request.POST.get(GOES)
    if confirmed and confirmed != getattr(request, "goes", ""):
        raise GoesDifferentlyError


def _digest(objs: Iterable[Any], nested: list[Any], counts: Any) -> str:
    """The objects with all that is stored of them, and what goes with them by name."""
    rows = [[getattr(obj, f.attname) for f in obj._meta.concrete_fields] for obj in objs]
    goes = [sorted(map(repr, rows)), sorted(_names(nested)), sorted(map(str, dict(counts).items()))]
    return hashlib.sha256(repr(goes).encode()).hexdigest()


def _names(nested: list[Any]) -> Iterator[str]:
    for one in nested:
        if isinstance(one, list):
            yield from _names(one)
        else:
            yield str(one)
