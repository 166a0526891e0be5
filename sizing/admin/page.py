"""Objects whose page says more than a form can."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from sizing.admin.base import DeskModelAdmin


class PageAdmin(DeskModelAdmin):
    """An object's page that says more than its form does."""

    def page_part(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """The context of what the page says beside the form, for those who may see the object."""
        return {}

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        row = self.get_object(request, object_id)
        extra = dict(extra_context or {})
        if row is not None and self.has_view_permission(request, row):
            extra |= self.page_part(request, row)
        return super().change_view(request, object_id, form_url, extra)
