"""Targets: saved wishes, each a question that can be asked again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sizing.admin.base import DeskModelAdmin
from sizing.admin.catalog import ask_link
from sizing.admin.lists import DeskChangeList
from sizing.admin.standing import Row, may_see_answers, question_of, row_of
from sizing.admin.target.question import no_tokens
from sizing.models import Target
from sizing.services.wishes import standings
from sizing.templatetags.desk import NOTHING, num

OF_ANSWERS = ("ask", "needs", "verdict", "distance", "measured_ago")
"""Columns that say what the target would take."""


class TargetForm(forms.ModelForm):  # type: ignore[type-arg]
    def clean(self) -> Any:
        cleaned = super().clean()
        model, variant = self.cleaned_data.get("model"), self.cleaned_data.get("variant")
        if model and variant and variant.model_id != model.pk:
            self.add_error("variant", f"This is a variant of {variant.model.name}, not of {model.name}.")
        if model and (told := no_tokens(model)):
            self.add_error("model", f"{told}.")
        return cleaned


class TargetChangeList(DeskChangeList):
    """The list with each target's answer beside it, all of one moment and one snapshot."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        targets: list[Any] = list(self.result_list)
        self.complete(request, targets)
        self.result_list = targets

    def complete(self, request: HttpRequest, rows: list[Any]) -> None:
        if not may_see_answers(request):
            return
        now = timezone.now()
        for target, standing in zip(rows, standings(rows), strict=True):
            target.row = row_of(standing, now)


class TargetAdmin(DeskModelAdmin):
    form = TargetForm
    list_display = (
        "model",
        "ask",
        "rate",
        "needs",
        "verdict",
        "distance",
        "measured_ago",
        "profile_name",
        "variant_name",
        "planned",
    )
    search_fields = ("model__name", "profile__name", "variant__name")
    list_select_related = ("model", "profile", "variant")
    autocomplete_fields = ("model", "profile", "variant")
    ordering = ("model__name", "id")
    fields = ("model", "tokens_per_sec", "profile", "variant", "utilization")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Target]:
        return super().get_queryset(request).select_related("model", "profile", "variant")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return TargetChangeList

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        may = may_see_answers(request)
        return tuple(name for name in self.list_display if may or name not in OF_ANSWERS)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        target = self.get_object(request, object_id) if may_see_answers(request) else None
        extra = {"ask_query": question_of(target) if target else "", **(extra_context or {})}
        return super().change_view(request, object_id, form_url, extra)

    @admin.display(description="ask")
    def ask(self, target: Target) -> SafeString:
        return ask_link(target.model, question_of(target))

    @admin.display(description="wished (tok/s)", ordering="tokens_per_sec")
    def rate(self, target: Target) -> str:
        return num(target.tokens_per_sec)

    @admin.display(description="needed / run")
    def needs(self, target: Target) -> str:
        row = _row(target)
        return NOTHING if row.needed is None else f"{num(row.needed)} / {num(row.current)}"

    @admin.display(description="verdict")
    def verdict(self, target: Target) -> SafeString:
        row = _row(target)
        badge = render_to_string("admin/board/verdict.html", {"verdict": row.verdict})
        return format_html('{}<br><span class="desk-quiet">{}</span>', badge, row.why) if row.why else badge

    @admin.display(description="to the next step")
    def distance(self, target: Target) -> str:
        return _row(target).holds or NOTHING

    @admin.display(description="measured")
    def measured_ago(self, target: Target) -> SafeString:
        return render_to_string("admin/board/measured.html", {"row": _row(target)})

    @admin.display(description="profile", ordering="profile__name")
    def profile_name(self, target: Target) -> str:
        return target.profile.name if target.profile else "the model's own"

    @admin.display(description="variant", ordering="variant__name")
    def variant_name(self, target: Target) -> str:
        return target.variant.name if target.variant else "first measured"

    @admin.display(description="utilization", ordering="utilization")
    def planned(self, target: Target) -> str:
        return num(target.utilization)


def _row(target: Any) -> Row:
    row: Row = target.row
    return row


ADMINS = ((Target, TargetAdmin),)
