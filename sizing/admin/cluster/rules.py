"""Mapping rules: written, tried on the pods that were last seen, saved."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

from sizing.admin.base import DeskModelAdmin, flag
from sizing.admin.cluster.may import may_look
from sizing.admin.cluster.trying import rules_with, trial
from sizing.models import MappingRule
from sizing.syncing import state

WORKS_FROM = "The rules work from the next import or sync on."


class RuleForm(forms.ModelForm):  # type: ignore[type-arg]
    """A rule whose patterns are regular expressions, and whose names stand only for groups that there are."""

    class Meta:
        # Help texts are HTML on a page.
        help_texts = {
            "model": escape(MappingRule._meta.get_field("model").help_text),
        }

    def clean(self) -> Any:
        cleaned: dict[str, Any] = super().clean() or {}
        by, key = self.cleaned_data.get("by"), self.cleaned_data.get("key")
        if by == MappingRule.By.LABEL and not key:
            self.add_error("key", "A rule by label needs the label's name.")
        self._check_pattern("namespace", self.cleaned_data.get("namespace", ""))
        pattern = self.cleaned_data.get("pattern", "")
        if pattern and self._check_pattern("pattern", pattern):
            # An empty alternative at its end matches always, so that the names can be tried.
            empty = re.compile(f"{pattern}\n|").match("")
            for name in ("model", "variant"):
                try:
                    if empty is not None:
                        empty.expand(self.cleaned_data.get(name, ""))
                except (re.error, IndexError) as error:
                    self.add_error(name, f"The pattern does not give that: {error}.")
        return cleaned

    def _check_pattern(self, name: str, pattern: str) -> bool:
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            self.add_error(name, f"This is no regular expression: {error}.")
            return False
        return True


class MappingRuleAdmin(DeskModelAdmin):
    """Rules in their order; the first that matches a pod decides.

    They are tried on the cluster's pods, so only by those who may see these.
    """

    form = RuleForm
    list_display = ("name", "place", "works", "of", "pattern", "gives")
    list_filter = ("enabled",)
    search_fields = ("name", "pattern", "model", "variant")
    ordering = ("position", "id")
    fields = ("name", "position", "enabled", "by", "key", "pattern", "namespace", "model", "variant")
    change_form_template = "admin/sizing/mappingrule/change_form.html"
    works = flag("enabled", "works", "yes", "switched off")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return super().changelist_view(request, {**(extra_context or {}), "may_try": may_look(request)})

    def get_urls(self) -> list[URLPattern]:
        pods = path("pods/", self.admin_site.admin_view(self.pods), name="sizing_mappingrule_pods")
        return [pods, *super().get_urls()]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        highest = MappingRule.objects.aggregate(highest=Max("position"))["highest"]
        behind = 0 if highest is None else highest + 1
        return {"position": str(behind), **super().get_changeform_initial_data(request)}

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        self._apply_soon(request)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        super().delete_model(request, obj)
        self._apply_soon(request)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        super().delete_queryset(request, queryset)
        self._apply_soon(request)

    def _apply_soon(self, request: HttpRequest) -> None:
        """A live sync takes the rules up at once; without one they wait for the next import."""
        if state.look().configured:
            state.request_now()
            self.message_user(request, "The sync brings in the cluster anew by these rules.", messages.INFO)
        else:
            self.message_user(request, WORKS_FROM, messages.INFO)

    # Trying

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        if request.method != "POST" or "_preview" not in request.POST:
            return form

        class Trying(form):  # type: ignore[valid-type,misc]
            """Looked at only: never valid, so that it is shown again and not saved."""

            def is_valid(self) -> bool:
                if super().is_valid():
                    request.tried_rule = self.instance  # type: ignore[attr-defined]
                return False

        return Trying

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        context["may_try"] = may_look(request)
        rule = getattr(request, "tried_rule", None)
        if rule is not None:
            if not context["may_try"]:
                raise PermissionDenied
            context["trial"] = trial(rules_with(rule))
            context["title"] = "What the rules would do with this one"
        return super().render_change_form(request, context, add, change, form_url, obj)

    def pods(self, request: HttpRequest) -> HttpResponse:
        """What the saved rules make of the pods that were last seen."""
        if not (self.has_view_permission(request) and may_look(request)):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "title": "What the rules do",
            "subtitle": None,
            "opts": self.opts,
            "trial": trial(rules_with()),
            "works_from": WORKS_FROM,
        }
        return TemplateResponse(request, "admin/sizing/mappingrule/pods.html", context)

    # Columns

    @admin.display(description="position", ordering="position")
    def place(self, rule: MappingRule) -> str:
        return str(rule.position)

    @admin.display(description="by", ordering="by")
    def of(self, rule: MappingRule) -> str:
        what = f"label {rule.key}" if rule.by == MappingRule.By.LABEL else rule.get_by_display()
        return f"{what} in {rule.namespace}" if rule.namespace else what

    @admin.display(description="gives", ordering="model")
    def gives(self, rule: MappingRule) -> SafeString | str:
        if not rule.model:
            return "no LLM"
        if not rule.variant:
            return rule.model
        return format_html('{} <span class="desk-quiet">({})</span>', rule.model, rule.variant)
