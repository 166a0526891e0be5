"""Nodes, with their GPUs."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count, Prefetch, Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from sizing.admin.base import DeskLines, HoldingAdmin
from sizing.admin.fields import labels_field, taints_field
from sizing.admin.filters import GpuTypeFilter, NodeStateFilter, ZoneFilter
from sizing.admin.gpus import holders_of, with_holders
from sizing.admin.kept import KeptAdmin
from sizing.admin.node_actions import NodeActions, node_state
from sizing.admin.node_page import node_part
from sizing.admin.page import PageAdmin
from sizing.domain.picture import ZONE_LABEL
from sizing.domain.specs import HOLDING_STATES
from sizing.inventory.document import Findings
from sizing.models import Gpu, Node
from sizing.services.inventory import check_nodes
from sizing.templatetags.desk import num

EDITABLE_GPUS = 16
TAINTS_SHOWN = 2
HOLDING = Q(placements__replica__state__in=HOLDING_STATES)


class NodeForm(forms.ModelForm):  # type: ignore[type-arg]
    labels = labels_field("labels")
    taints = taints_field()

    def clean_cost_per_hour(self) -> Decimal | None:
        cost: Decimal | None = self.cleaned_data["cost_per_hour"]
        if cost is not None and cost < 0:
            raise forms.ValidationError("A cost is 0 or more; left empty it is not known.")
        return cost


class GpuTable(DeskLines):
    """A node's GPUs and who holds them."""

    model = Gpu
    readonly_fields = ("holders",)
    ordering = ("index",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Gpu]:
        return with_holders(super().get_queryset(request).select_related("node"))

    @admin.display(description="held by")
    def holders(self, gpu: Gpu) -> SafeString | str:
        return (holders_of(gpu) or "free") if gpu.pk else ""


class GpuFormSet(forms.BaseInlineFormSet):  # type: ignore[type-arg]
    """Lines of a table: their inputs have no labels beside them, so each carries its own."""

    def add_fields(self, form: Any, index: int | None) -> None:
        super().add_fields(form, index)
        gpu = f"GPU {form.instance.index}" if form.instance.pk else "new GPU"
        for name, field in form.fields.items():
            field.widget.attrs["aria-label"] = f"{field.label or name} of {gpu}"


class GpuInline(GpuTable):
    """To be edited in place; the empty line is for those whose browser cannot add one."""

    extra = 1
    formset = GpuFormSet
    classes = ("desk-plain",)
    fields = ("index", "type", "memory_mib", "used_outside_mib", "healthy", "partition", "uuid", "holders")


class GpuLines(GpuTable):
    """Where they are many (slices): to be read here, and edited one by one."""

    show_change_link = True
    can_delete = False
    fields = ("index", "type", "memory_mib", "used_outside_mib", "healthy", "partition", "holders")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class NodeAdmin(NodeActions, KeptAdmin, HoldingAdmin, PageAdmin):
    form = NodeForm
    kept_note = "Kept by the cluster: its next import or sync overwrites all but the cost per hour."
    list_display = (
        "name",
        "state",
        "gpu_types",
        "gpus_held",
        "unhealthy",
        "zone",
        "cpu",
        "host_memory",
        "cost",
    )
    list_filter = (NodeStateFilter, ZoneFilter, GpuTypeFilter)
    search_fields = ("name",)
    search_help_text = "Part of a name, of a label as in zone=eu-1a, or of a GPU's UUID."
    ordering = ("name",)
    readonly_fields = ("stale", "seen_at")
    fieldsets = (
        (None, {"fields": ("name", "ready", "schedulable", "stale", "seen_at")}),
        ("Scheduling", {"fields": ("labels", "taints")}),
        ("Host", {"fields": ("cpu_millis", "memory_mib", "pods", "cost_per_hour")}),
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Each word of the search stands in a node's name, a label of it, or the UUID of a GPU of it."""
        queryset = queryset.annotate(labels_text=Cast("labels", TextField()))
        for word in search_term.split():
            found = Q(name__icontains=word) | Q(labels_text__icontains=label_text(word))
            if "=" not in word:
                found |= Q(pk__in=Gpu.objects.filter(uuid__icontains=word).values("node"))
            queryset = queryset.filter(found)
        return queryset, False

    def for_list(self, queryset: QuerySet[Node]) -> QuerySet[Node]:
        gpus = Gpu.objects.annotate(holders=Count("placements", filter=HOLDING)).order_by("index")
        return queryset.prefetch_related(Prefetch("gpus", queryset=gpus))

    @admin.display(description="state, taints", ordering="schedulable")
    def state(self, node: Node) -> SafeString:
        words = node_state(node)
        taints = taint_words(node)
        return format_html(
            '<span class="desk-state desk-state-{}">{}</span>{}',
            words.split(",")[0].replace(" ", "-"),
            words,
            format_html('<div class="desk-taints">{}</div>', breakable(taints)) if taints else "",
        )

    @admin.display(description="GPUs")
    def gpu_types(self, node: Node) -> str:
        types = Counter(gpu.type for gpu in node.gpus.all())
        return ", ".join(f"{number} × {name}" for name, number in types.items()) or "none"

    @admin.display(description="held")
    def gpus_held(self, node: Node) -> str:
        gpus: Any = node.gpus.all()
        return f"{sum(1 for gpu in gpus if gpu.holders)} of {len(gpus)}"

    @admin.display(description="unhealthy")
    def unhealthy(self, node: Node) -> str:
        return str(sum(1 for gpu in node.gpus.all() if not gpu.healthy) or "")

    @admin.display(description="zone")
    def zone(self, node: Node) -> str:
        return str(node.labels.get(ZONE_LABEL, ""))

    @admin.display(description="CPU (millicores)", ordering="cpu_millis")
    def cpu(self, node: Node) -> str:
        return num(node.cpu_millis)

    @admin.display(description="host memory (MiB)", ordering="memory_mib")
    def host_memory(self, node: Node) -> str:
        return num(node.memory_mib)

    @admin.display(description="cost per hour", ordering="cost_per_hour")
    def cost(self, node: Node) -> str:
        return num(node.cost_per_hour)

    def get_inlines(self, request: HttpRequest, obj: Node | None) -> list[type[Any]]:
        many = obj is not None and obj.gpus.count() > EDITABLE_GPUS
        return [GpuLines if many else GpuInline]

    def page_part(self, request: HttpRequest, row: Node) -> dict[str, Any]:
        # As it is stored: a form that is shown again has put what was typed into its own.
        return {"schedulable": row.schedulable, **node_part(request, row)}

    def check_held(self, obj: Node, form: Any) -> Findings:
        return check_nodes({obj.pk})


def label_text(word: str) -> str:
    """`zone=eu-1a` as it stands in the text of a node's labels: a key's end, and its value's begin."""
    key, equals, value = word.partition("=")
    return f'{key}": "{value}' if equals else word


def breakable(text: str) -> SafeString:
    """The text, to be broken after its colons where a column is narrow."""
    return format_html_join(mark_safe(":<wbr>"), "{}", ((part,) for part in text.split(":")))


def taint_words(node: Node) -> str:
    """A node's taints as kubectl writes them, the first two of them."""
    taints = [
        f"{taint['key']}{'=' if taint.get('value') else ''}{taint.get('value') or ''}:{taint['effect']}"
        for taint in node.taints
    ]
    more = len(taints) - TAINTS_SHOWN
    return ", ".join(taints[:TAINTS_SHOWN]) + (f" and {more} more" if more > 0 else "")


ADMINS = ((Node, NodeAdmin),)
