"""The list of kept answers, and the page of one. Nobody adds, changes or deletes an answer."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import get_script_prefix, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sizing.admin import words
from sizing.admin.answers import shown
from sizing.admin.base import moment
from sizing.admin.page import PageAdmin
from sizing.admin.target.answered import VICTIMS_SHOWN
from sizing.models import Answer, Measurement, ServedModel
from sizing.models.answer import AnswerQuerySet
from sizing.services import answers
from sizing.services.errors import DeskError


class AnswerAdmin(PageAdmin):
    list_display = ("question", "verdict", "sentence", "who", "asked")
    list_filter = ("fits", "channel", "asked_at")
    search_fields = ("model", "asked_by_name")
    ordering = ("-asked_at", "-id")
    asked = moment("asked_at", "asked")

    def for_list(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return cast(AnswerQuerySet, queryset).in_short()

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return ()  # the page says it all in its own words

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """One that was given a moment ago is waited for."""
        if self.has_view_permission(request):
            with suppress(ValueError):
                answers.written_by_now(UUID(object_id))
        return super().change_view(request, object_id, form_url, extra_context)

    @admin.display(description="question", ordering="model")
    def question(self, row: Answer) -> str:
        return shown.question(row)

    @admin.display(description="verdict", ordering="fits")
    def verdict(self, row: Answer) -> SafeString:
        said = words.verdict(shown.counts(row))
        return format_html(
            '<span class="desk-badge desk-badge-{}"><span aria-hidden="true">{}</span> {}</span>',
            said.kind,
            said.sign,
            said.text,
        )

    @admin.display(description="answer")
    def sentence(self, row: Answer) -> str:
        return str(words.sentence(shown.counts(row)))

    @admin.display(description="who", ordering="asked_by_name")
    def who(self, row: Answer) -> str:
        return shown.asked(row)

    def page_part(self, request: HttpRequest, row: Answer) -> dict[str, Any]:
        """What the page says of an answer, and with `replay` what comes of computing it again."""
        victims = (row.result.get("preemption") or {}).get("victims") or []
        stopped = sum(model["stopped"] for model in (row.result.get("preemption") or {}).get("models", ()))
        model = ServedModel.objects.filter(name=row.model).first()
        may_ask = model is not None and request.user.has_perm("sizing.view_servedmodel")
        measurements = self.admin_site.get_model_admin(Measurement)
        return {
            "title": f"Answer of {row.asked_at:%Y-%m-%d %H:%M:%S} UTC",
            "subtitle": None,
            "row": row,
            "question": shown.question(row),
            "answer": row.result,
            "sentence": words.sentence(row.result),
            "verdict": words.verdict(row.result),
            "asked_by": shown.asked(row),
            "victims": victims[:VICTIMS_SHOWN],
            "more_victims": max(stopped - VICTIMS_SHOWN, 0),
            "bound": words.bound_words(row.measured["bound"]),
            "may_view_measurement": row.measurement_id and measurements.has_view_permission(request),
            "ask_url": _asked_again(model, row) if model and may_ask else None,
            "json_url": f"{get_script_prefix()}api/v1/answers/{row.pk}",
            **(replay_part(row) if "replay" in request.GET else {}),
        }


def _asked_again(model: ServedModel, row: Answer) -> str:
    return f"{reverse('admin:sizing_servedmodel_target', args=[model.pk])}?{shown.query(row)}"


def replay_part(row: Answer) -> dict[str, Any]:
    """What comes of computing an answer again."""
    try:
        found = answers.replay(row)
    except DeskError as error:
        return {"replayed": f"{error.message[0].upper()}{error.message[1:]}."}
    return {
        "replayed": shown.outcome(found),
        "same": found.same,
        "differences": [shown.differing(one) for one in found.differences],
    }
