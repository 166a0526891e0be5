"""What is served: models, their variants, and the profiles that they are asked on."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Max, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from sizing.admin.base import DeskModelAdmin, HoldingAdmin, counted
from sizing.admin.fields import gpu_types_field, labels_field, tolerations_field
from sizing.admin.kept import MadeAdmin
from sizing.admin.measured import asking
from sizing.admin.measured.of_model import measured_part
from sizing.admin.model_page import replicas_part, variants_part
from sizing.admin.model_page.variants import claim_of, shape_of, types_of
from sizing.admin.page import PageAdmin
from sizing.admin.target import target_view
from sizing.domain.specs import SERVING_STATES
from sizing.inventory.document import Findings
from sizing.models import BenchProfile, Replica, ServedModel, Variant
from sizing.services.inventory import check_variant
from sizing.templatetags.desk import num


def ask_link(model: ServedModel, query: str = "") -> SafeString:
    return format_html(
        '<a class="desk-ask-link" href="{}{}" aria-label="What would {} take?">Ask</a>',
        reverse("admin:sizing_servedmodel_target", args=[model.pk]),
        f"?{query}" if query else "",
        model.name,
    )


class ServedModelAdmin(MadeAdmin, PageAdmin):
    list_display = (
        "name",
        "ask",
        "priority",
        "running",
        "minimum",
        "maximum",
        "variant_count",
        "default_profile",
        "workload",
        "owner",
    )
    list_filter = ("workload", "preemption_policy")
    search_fields = ("name", "owner")
    ordering = ("name",)
    list_select_related = ("default_profile",)
    autocomplete_fields = ("default_profile",)
    actions = ("refresh_now",)
    fieldsets = (
        (None, {"fields": ("name", "workload", "owner", "default_profile")}),
        ("How many replicas", {"fields": ("min_replicas", "max_replicas")}),
        ("Preemption", {"fields": ("priority", "preemption_policy")}),
    )

    def for_list(self, queryset: QuerySet[ServedModel]) -> QuerySet[ServedModel]:
        serving = Replica.objects.filter(state__in=SERVING_STATES)
        return queryset.annotate(
            running_count=counted(serving, "variant__model"),
            variants_count=counted(Variant.objects.all(), "model"),
        )

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("<path:object_id>/target/", view(self.target), name="sizing_servedmodel_target"),
            path("<path:object_id>/refresh/", view(self.refresh), name="sizing_servedmodel_refresh"),
            *super().get_urls(),
        ]

    def target(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return target_view(self, request, object_id)

    def refresh(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return asking.refresh_view(self, request, object_id)

    def page_part(self, request: HttpRequest, row: ServedModel) -> dict[str, Any]:
        """What is measured of a model, how it can run and what runs of it, beside its form."""
        variant_admin = self.admin_site.get_model_admin(Variant)
        replica_admin = self.admin_site.get_model_admin(Replica)
        return {
            "title": row.name,
            "subtitle": None,
            "folded": "yes",
            "may_add_variant": variant_admin.has_add_permission(request),
            "may_add_replica": replica_admin.has_add_permission(request),
            **measured_part(request, row),
            **variants_part(request, row),
            **replicas_part(request, row),
        }

    def has_refresh_permission(self, request: HttpRequest) -> bool:
        return asking.may_ask(request)

    @admin.action(description="Refresh now: measure on the model's own profile", permissions=["refresh"])
    def refresh_now(self, request: HttpRequest, queryset: QuerySet[ServedModel]) -> HttpResponse | None:
        models = list(queryset.select_related("default_profile").order_by("name"))
        return asking.refresh_action(self, request, asking.wishes_of_models(models))

    @admin.display(description="ask")
    def ask(self, model: ServedModel) -> SafeString | str:
        return ask_link(model) if model.workload == ServedModel.Workload.MODEL else ""

    @admin.display(description="running", ordering="running_count")
    def running(self, model: Any) -> str:
        return num(model.running_count)

    @admin.display(description="min", ordering="min_replicas")
    def minimum(self, model: ServedModel) -> str:
        return num(model.min_replicas)

    @admin.display(description="max", ordering="max_replicas")
    def maximum(self, model: ServedModel) -> str:
        return num(model.max_replicas) if model.max_replicas is not None else "no limit"

    @admin.display(description="variants", ordering="variants_count")
    def variant_count(self, model: Any) -> str:
        return num(model.variants_count)


class VariantForm(forms.ModelForm):  # type: ignore[type-arg]
    gpu_types = gpu_types_field(label="GPU types", help_text="Empty: any.")
    node_selector = labels_field("node_selector", help_text="Labels that a node must carry.")
    tolerations = tolerations_field(help_text="Kubernetes form.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance.pk and "position" in self.fields:
            self.fields["position"].initial = None
            self.fields["position"].required = False
            self.fields["position"].help_text = "Order of preference, lowest first. Empty: the last."

    def clean(self) -> Any:
        cleaned = super().clean()
        model = self.cleaned_data.get("model")
        if model and "position" in self.cleaned_data and self.cleaned_data["position"] is None:
            last = model.variants.aggregate(last=Max("position"))["last"]
            self.cleaned_data["position"] = 0 if last is None else last + 1
        return cleaned

    def clean_topology_key(self) -> str | None:
        return self.cleaned_data["topology_key"] or None


class VariantAdmin(MadeAdmin, HoldingAdmin):
    form = VariantForm
    list_display = ("name", "model", "position", "shape", "claim", "types", "replica_count")
    search_fields = ("name", "model__name")
    ordering = ("model__name", "position", "id")
    actions = ("refresh_now",)
    list_select_related = ("model",)
    autocomplete_fields = ("model",)
    label_related = ("model",)
    fieldsets = (
        (None, {"fields": ("model", "name", "position")}),
        ("Shape", {"fields": ("gpus", "nodes", "gpu_types", "topology_key")}),
        ("Claim on each GPU", {"fields": ("gpu_memory_mib", "gpu_memory_fraction")}),
        ("Nodes", {"fields": ("node_selector", "tolerations", "cpu_millis", "memory_mib")}),
    )

    shape = staticmethod(admin.display(description="GPUs a replica")(shape_of))
    claim = staticmethod(admin.display(description="claim on each GPU")(claim_of))
    types = staticmethod(admin.display(description="GPU types")(types_of))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Variant]:
        return super().get_queryset(request).select_related("model")

    def for_list(self, queryset: QuerySet[Variant]) -> QuerySet[Variant]:
        return queryset.annotate(replicas_count=counted(Replica.objects.all(), "variant"))

    def autocomplete_label(self, obj: Variant) -> str:
        return f"{obj.model.name} · {obj.name}"

    def check_held(self, obj: Variant, form: Any) -> Findings:
        return check_variant(obj.pk)

    def has_refresh_permission(self, request: HttpRequest) -> bool:
        return asking.may_ask(request)

    @admin.action(description="Refresh now: measure on the model's own profile", permissions=["refresh"])
    def refresh_now(self, request: HttpRequest, queryset: QuerySet[Variant]) -> HttpResponse | None:
        variants = queryset.select_related("model__default_profile").order_by("model__name", "position", "id")
        return asking.refresh_action(self, request, asking.wishes_of_variants(list(variants)))

    @admin.display(description="replicas", ordering="replicas_count")
    def replica_count(self, variant: Any) -> str:
        return num(variant.replicas_count)


class BenchProfileForm(forms.ModelForm):  # type: ignore[type-arg]
    def clean(self) -> Any:
        cleaned = super().clean()
        limits = ("ttft_ms", "itl_ms", "e2e_ms")
        for name in limits:
            limit = self.cleaned_data.get(name)
            if limit is not None and limit <= 0:
                self.add_error(name, "A limit is more than 0; left empty there is none.")
        if not any(name in self.errors or self.cleaned_data.get(name) for name in limits):
            self.add_error(limits[0], "The SLO needs at least one limit: TTFT, ITL or end to end.")
        return cleaned


class BenchProfileAdmin(DeskModelAdmin):
    form = BenchProfileForm
    list_display = (
        "name",
        "tokens_in",
        "tokens_out",
        "ttft",
        "itl",
        "e2e",
        "percentile_met",
        "arrival",
        "refresh",
    )
    list_filter = ("arrival",)
    search_fields = ("name",)
    ordering = ("name",)
    fieldsets = (
        (None, {"fields": ("name", "input_tokens", "output_tokens", "arrival")}),
        ("SLO: at least one limit", {"fields": ("ttft_ms", "itl_ms", "e2e_ms", "percentile")}),
        ("Measuring anew", {"fields": ("refresh_every_h",)}),
    )

    @admin.display(description="input (tokens)", ordering="input_tokens")
    def tokens_in(self, profile: BenchProfile) -> str:
        return num(profile.input_tokens)

    @admin.display(description="output (tokens)", ordering="output_tokens")
    def tokens_out(self, profile: BenchProfile) -> str:
        return num(profile.output_tokens)

    @admin.display(description="TTFT (ms)", ordering="ttft_ms")
    def ttft(self, profile: BenchProfile) -> str:
        return num(profile.ttft_ms)

    @admin.display(description="ITL (ms)", ordering="itl_ms")
    def itl(self, profile: BenchProfile) -> str:
        return num(profile.itl_ms)

    @admin.display(description="end to end (ms)", ordering="e2e_ms")
    def e2e(self, profile: BenchProfile) -> str:
        return num(profile.e2e_ms)

    @admin.display(description="met by (%)", ordering="percentile")
    def percentile_met(self, profile: BenchProfile) -> str:
        return num(profile.percentile)

    @admin.display(description="refresh every (h)", ordering="refresh_every_h")
    def refresh(self, profile: BenchProfile) -> str:
        return num(profile.refresh_every_h) if profile.refresh_every_h is not None else "by hand"


ADMINS = ((ServedModel, ServedModelAdmin), (Variant, VariantAdmin), (BenchProfile, BenchProfileAdmin))
