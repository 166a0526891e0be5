"""Targets: saved wishes, each a question that can be asked again."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString

from sizing.admin.base import DeskModelAdmin
from sizing.admin.catalog import ask_link
from sizing.models import Target
from sizing.templatetags.desk import num


def question_of(target: Target) -> str:
    """The target's question as the Target page's query string."""
    question = {"tokens_per_sec": f"{target.tokens_per_sec.normalize():f}"}
    if target.profile:
        question["profile"] = target.profile.name
    if target.variant:
        question["variant"] = target.variant.name
    if target.utilization != 1:
        question["utilization"] = f"{target.utilization.normalize():f}"
    return urlencode(question)


class TargetForm(forms.ModelForm):  # type: ignore[type-arg]
    def clean(self) -> Any:
        cleaned = super().clean()
        model, variant = self.cleaned_data.get("model"), self.cleaned_data.get("variant")
        if model and variant and variant.model_id != model.pk:
            self.add_error("variant", f"This is a variant of {variant.model.name}, not of {model.name}.")
        return cleaned


class TargetAdmin(DeskModelAdmin):
    form = TargetForm
    list_display = ("model", "ask", "rate", "profile_name", "variant_name", "planned")
    search_fields = ("model__name", "profile__name", "variant__name")
    list_select_related = ("model", "profile", "variant")
    autocomplete_fields = ("model", "profile", "variant")
    ordering = ("model__name", "id")
    fields = ("model", "tokens_per_sec", "profile", "variant", "utilization")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Target]:
        return super().get_queryset(request).select_related("model", "profile", "variant")

    def may_ask(self, request: HttpRequest) -> bool:
        return request.user.has_perm("sizing.view_servedmodel") or request.user.has_perm(
            "sizing.change_servedmodel"
        )

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        return tuple(name for name in self.list_display if name != "ask" or self.may_ask(request))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        target = self.get_object(request, object_id) if self.may_ask(request) else None
        extra = {"ask_query": question_of(target) if target else "", **(extra_context or {})}
        return super().change_view(request, object_id, form_url, extra)

    @admin.display(description="ask")
    def ask(self, target: Target) -> SafeString:
        return ask_link(target.model, question_of(target))

    @admin.display(description="wished (tok/s)", ordering="tokens_per_sec")
    def rate(self, target: Target) -> str:
        return num(target.tokens_per_sec)

    @admin.display(description="profile", ordering="profile__name")
    def profile_name(self, target: Target) -> str:
        return target.profile.name if target.profile else "the model's own"

    @admin.display(description="variant", ordering="variant__name")
    def variant_name(self, target: Target) -> str:
        return target.variant.name if target.variant else "first measured"

    @admin.display(description="utilization", ordering="utilization")
    def planned(self, target: Target) -> str:
        return num(target.utilization)


ADMINS = ((Target, TargetAdmin),)
