"""Nodes, with their GPUs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Count, Prefetch, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from sizing.admin.base import DeskLines, HoldingAdmin
from sizing.admin.fields import labels_field, taints_field
from sizing.admin.gpus import GpuTypeFilter, holders_of, with_holders
from sizing.admin.kept import KeptAdmin
from sizing.domain.specs import HOLDING_STATES
from sizing.inventory.document import Findings
from sizing.models import Gpu, Node
from sizing.models.locking import inventory_lock
from sizing.services.inventory import check_nodes
from sizing.templatetags.desk import num

EDITABLE_GPUS = 16
TAINTS_SHOWN = 2
HOLDING = Q(placements__replica__state__in=HOLDING_STATES)


class NodeForm(forms.ModelForm):  # type: ignore[type-arg]
    labels = labels_field("labels")
    taints = taints_field()


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
    """To be edited in place."""

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


class NodeAdmin(KeptAdmin, HoldingAdmin):
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
    list_filter = ("ready", "schedulable", "stale", GpuTypeFilter)
    search_fields = ("name",)
    ordering = ("name",)
    readonly_fields = ("stale", "seen_at")
    actions = ("cordon", "uncordon")
    fieldsets = (
        (None, {"fields": ("name", "ready", "schedulable", "stale", "seen_at")}),
        ("Scheduling", {"fields": ("labels", "taints")}),
        ("Host", {"fields": ("cpu_millis", "memory_mib", "pods", "cost_per_hour")}),
    )

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
        return str(node.labels.get("topology.kubernetes.io/zone", ""))

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

    def check_held(self, obj: Node, form: Any) -> Findings:
        return check_nodes({obj.pk})

    # Actions

    @admin.action(description="Cordon: nothing new is placed there", permissions=["change"])
    def cordon(self, request: HttpRequest, queryset: QuerySet[Node]) -> HttpResponse | None:
        return self._set_schedulable(request, queryset, False)

    @admin.action(description="Uncordon: open for new replicas", permissions=["change"])
    def uncordon(self, request: HttpRequest, queryset: QuerySet[Node]) -> HttpResponse | None:
        return self._set_schedulable(request, queryset, True)

    def _set_schedulable(
        self, request: HttpRequest, queryset: QuerySet[Node], schedulable: bool
    ) -> HttpResponse | None:
        verb, done = ("uncordon", "open for new replicas") if schedulable else ("cordon", "cordoned")
        selected = Node.objects.filter(pk__in=queryset.order_by().values("pk"))
        changing = selected.exclude(schedulable=schedulable).order_by("name")
        already = selected.count() - changing.count()
        if not changing.exists():
            self.message_user(
                request, f"Nothing to change: all selected nodes are {done} already.", messages.INFO
            )
            return None
        if request.POST.get("confirmed"):
            with inventory_lock():
                nodes = list(changing)
                Node.objects.filter(pk__in=changing.order_by().values("pk")).update(schedulable=schedulable)
                self.log_all(request, nodes, "schedulable")
            self.message_user(
                request, f"{num(len(nodes))} node{'s' if len(nodes) > 1 else ''} {done}.", messages.SUCCESS
            )
            return None
        note = (
            "Replicas that run there stay; nothing new is counted as fitting."
            if not schedulable
            else ("Their free GPUs count as room again.")
        )
        if already:
            note += f" {num(already)} of the selected nodes {'is' if already == 1 else 'are'} {done} already."
        return self.confirmation(
            request,
            action=verb,
            title=f"{verb.capitalize()} {num(changing.count())} node{'s' if changing.count() > 1 else ''}?",
            changes=[
                f"{node.name}: {node_state(node)} → {done}, {self.gpus_held(node)} GPUs held"
                for node in self.for_list(changing)
            ],
            note=note,
            button=f"Yes, {verb}",
        )


def node_state(node: Node) -> str:
    """What keeps a node closed, in words; `open` where nothing does."""
    closed = [
        word
        for word, applies in (
            ("not ready", not node.ready),
            ("cordoned", not node.schedulable),
            ("stale", node.stale),
        )
        if applies
    ]
    return ", ".join(closed) or "open"


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
