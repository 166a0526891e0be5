"""GPUs, and who holds them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from sizing.admin.base import HoldingAdmin, flag
from sizing.admin.filters import GpuTypeFilter, HeldFilter, ZoneFilter
from sizing.inventory.document import Findings
from sizing.models import Gpu, Placement, Replica
from sizing.services.inventory import check_nodes
from sizing.templatetags.desk import num


def with_holders(queryset: QuerySet[Gpu]) -> QuerySet[Gpu]:
    placements = Placement.objects.select_related("replica").order_by("replica__name")
    return queryset.prefetch_related(Prefetch("placements", queryset=placements))


def holders_of(gpu: Gpu) -> SafeString | None:
    """Links to the replicas on a GPU, or None; a pending one holds nothing and is named so."""
    if not gpu.placements.all():
        return None
    return format_html_join(
        ", ",
        '<a href="{}">{}</a>{}',
        (
            (
                reverse("admin:sizing_replica_change", args=[p.replica_id]),
                p.replica.name,
                " (pending)" if p.replica.state == Replica.State.PENDING else "",
            )
            for p in gpu.placements.all()
        ),
    )


class GpuAdmin(HoldingAdmin):
    list_display = (
        "name",
        "node_link",
        "type",
        "memory",
        "used_outside",
        "health",
        "split",
        "holders",
        "identity",
    )
    list_filter = (HeldFilter, "healthy", "partition", GpuTypeFilter, ZoneFilter)
    search_fields = ("node__name", "type", "uuid")
    search_help_text = "Part of a node's name, of a type, or of a UUID."
    list_select_related = ("node",)
    autocomplete_fields = ("node",)
    ordering = ("node__name", "index")
    label_related = ("node",)

    health = flag("healthy", "health", "healthy", "unhealthy")
    split = flag("partition", "partition", "partition")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Gpu]:
        return super().get_queryset(request).select_related("node")

    def for_list(self, queryset: QuerySet[Gpu]) -> QuerySet[Gpu]:
        return with_holders(queryset)

    def get_readonly_fields(self, request: HttpRequest, obj: Gpu | None = None) -> tuple[str, ...]:
        return ("node",) if obj else ()

    def check_held(self, obj: Gpu, form: Any) -> Findings:
        return check_nodes({obj.node_id})

    @admin.display(description="GPU", ordering="node__name")
    def name(self, gpu: Gpu) -> str:
        return f"{gpu.node.name} GPU {gpu.index}"

    @admin.display(description="node", ordering="node__name")
    def node_link(self, gpu: Gpu) -> SafeString:
        return format_html(
            '<a href="{}">{}</a>', reverse("admin:sizing_node_change", args=[gpu.node_id]), gpu.node.name
        )

    @admin.display(description="memory (MiB)", ordering="memory_mib")
    def memory(self, gpu: Gpu) -> str:
        return num(gpu.memory_mib) if gpu.memory_mib is not None else "unknown"

    @admin.display(description="used outside (MiB)", ordering="used_outside_mib")
    def used_outside(self, gpu: Gpu) -> str:
        return num(gpu.used_outside_mib)

    @admin.display(description="UUID", ordering="uuid")
    def identity(self, gpu: Gpu) -> str:
        return gpu.uuid

    @admin.display(description="held by", empty_value="free")
    def holders(self, gpu: Gpu) -> SafeString | str | None:
        return holders_of(gpu)


ADMINS = ((Gpu, GpuAdmin),)
