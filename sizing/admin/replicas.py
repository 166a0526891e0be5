"""Replicas and where they are placed."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest

from sizing.admin.base import HoldingAdmin, flag, moment
from sizing.admin.fields import find_gpus, label_date_and_time, parse_placement, placement_of, placement_text
from sizing.admin.filters import ModelFilter, OnNodeFilter
from sizing.admin.kept import KeptAdmin
from sizing.admin.replica_actions import ReplicaActions
from sizing.inventory.document import Findings, Problem, ReplicaEntry
from sizing.inventory.places import FilePlaces
from sizing.inventory.stored import read_around
from sizing.inventory.unusual import check_unusual
from sizing.models import Gpu, Placement, Replica
from sizing.services.inventory import check_nodes
from sizing.templatetags.desk import num

PLACEMENTS = Prefetch("placements", queryset=Placement.objects.select_related("gpu__node"))
NODES_IN_LIST = 4


class ReplicaForm(forms.ModelForm):  # type: ignore[type-arg]
    placement = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "class": "desk-code", "spellcheck": "false"}),
        help_text="GPU indexes by node, such as gpu-a1: 0 1 2 3; gpu-a2: 0-3. Empty only while pending.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        label_date_and_time(self.fields, "started_at")
        if self.instance.pk and "placement" in self.fields:
            self.initial["placement"] = placement_text(placement_of(self.instance))

    def clean_placement(self) -> list[Gpu]:
        return find_gpus(parse_placement(self.cleaned_data["placement"]))

    def clean(self) -> Any:
        cleaned = super().clean()
        gpus: list[Gpu] | None = self.cleaned_data.get("placement")
        if gpus is None:
            return cleaned
        if not gpus and self.cleaned_data.get("state") != Replica.State.PENDING:
            self.add_error("placement", "A replica without a placement can only be pending.")
        return cleaned


class OneReplica(FilePlaces):
    """Has a place for one replica alone, so that nothing else is warned of."""

    def __init__(self, name: str) -> None:
        self.name = name

    def replica(self, replica: ReplicaEntry, node: str | None = None, gpu: int | None = None) -> str | None:
        return "placement" if replica.name == self.name else None


def unusual_places(replica: Replica, nodes: set[int]) -> list[Problem]:
    """What is odd about where a replica stands, as a load of the inventory would warn of it."""
    findings = Findings()
    check_unusual(read_around(nodes, {replica.pk}), OneReplica(replica.name), findings)
    # How many replicas its model runs is not to be seen from these nodes alone.
    return [
        Problem("", warning.message)
        for warning in findings.warnings
        if not warning.message.startswith("model ")
    ]


class ReplicaAdmin(ReplicaActions, KeptAdmin, HoldingAdmin):
    form = ReplicaForm
    kept_note = "Kept by the cluster: its next import or sync overwrites all but endpoint and benchable."
    list_display = (
        "name",
        "model_name",
        "variant_name",
        "state",
        "placed",
        "gpu_count",
        "started",
        "may_bench",
    )
    list_filter = ("state", "benchable", ModelFilter, OnNodeFilter)
    search_fields = ("name", "variant__name", "variant__model__name")
    search_help_text = "Part of a replica's, a model's or a variant's name."
    list_select_related = ("variant__model",)
    autocomplete_fields = ("variant",)
    ordering = ("name",)
    fields = ("name", "variant", "state", "placement", "started_at", "endpoint", "benchable", "priority")

    started = moment("started_at", "started")
    may_bench = flag("benchable", "benchable", "benchable")

    def for_list(self, queryset: QuerySet[Replica]) -> QuerySet[Replica]:
        return queryset.prefetch_related(PLACEMENTS)

    @admin.display(description="model", ordering="variant__model__name")
    def model_name(self, replica: Replica) -> str:
        return replica.variant.model.name

    @admin.display(description="variant", ordering="variant__name")
    def variant_name(self, replica: Replica) -> str:
        return replica.variant.name

    @admin.display(description="placed on")
    def placed(self, replica: Replica) -> str:
        nodes = placement_of(replica)
        shown = placement_text(dict(list(nodes.items())[:NODES_IN_LIST]))
        more = len(nodes) - NODES_IN_LIST
        return f"{shown} and {more} more nodes" if more > 0 else shown

    @admin.display(description="GPUs")
    def gpu_count(self, replica: Replica) -> str:
        return num(len(replica.placements.all()))

    @admin.display(description="placement")
    def placement(self, replica: Replica) -> str:
        """Shown to those who may look but not change."""
        return placement_text(placement_of(replica))

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        wanted = {gpu.pk for gpu in form.cleaned_data["placement"]}
        held = set(form.instance.placements.values_list("gpu_id", flat=True))
        if held - wanted:
            form.instance.placements.filter(gpu_id__in=held - wanted).delete()
        Placement.objects.bulk_create(
            Placement(replica=form.instance, gpu_id=gpu) for gpu in sorted(wanted - held)
        )
        super().save_related(request, form, formsets, change)

    def check_held(self, obj: Replica, form: Any) -> Findings:
        nodes = {gpu.node_id for gpu in form.cleaned_data["placement"]}
        found = check_nodes(nodes, {obj.pk})
        if not found.errors:
            found.warnings.extend(unusual_places(obj, nodes))
        return found


ADMINS = ((Replica, ReplicaAdmin),)
