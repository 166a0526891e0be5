"""Replicas and where they are placed."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse

from sizing.admin.base import HoldingAdmin, flag, moment
from sizing.admin.fields import find_gpus, label_date_and_time, parse_placement, placement_of, placement_text
from sizing.admin.kept import KeptAdmin
from sizing.inventory.document import Findings, Problem, ReplicaEntry
from sizing.inventory.places import FilePlaces
from sizing.inventory.stored import read_around
from sizing.inventory.unusual import check_unusual
from sizing.models import Gpu, Placement, Replica
from sizing.models.locking import inventory_lock
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
        label_date_and_time(self, "started_at")
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


class ReplicaAdmin(KeptAdmin, HoldingAdmin):
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
    list_filter = ("state", "benchable")
    search_fields = ("name", "variant__name", "variant__model__name")
    list_select_related = ("variant__model",)
    autocomplete_fields = ("variant",)
    ordering = ("name",)
    actions = ("mark_benchable", "unmark_benchable")
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

    # Actions

    @admin.action(description="Mark benchable: measurements may load them", permissions=["change"])
    def mark_benchable(self, request: HttpRequest, queryset: QuerySet[Replica]) -> HttpResponse | None:
        return self._set_benchable(request, queryset, True)

    @admin.action(description="Unmark benchable: measurements leave them alone", permissions=["change"])
    def unmark_benchable(self, request: HttpRequest, queryset: QuerySet[Replica]) -> HttpResponse | None:
        return self._set_benchable(request, queryset, False)

    def _set_benchable(
        self, request: HttpRequest, queryset: QuerySet[Replica], benchable: bool
    ) -> HttpResponse | None:
        done = "benchable" if benchable else "not benchable"
        selected = Replica.objects.filter(pk__in=queryset.order_by().values("pk"))
        changing = selected.exclude(benchable=benchable).order_by("name").select_related("variant__model")
        number = changing.count()
        if not number:
            self.message_user(
                request, f"Nothing to change: all selected replicas are {done} already.", messages.INFO
            )
            return None
        if request.POST.get("confirmed"):
            with inventory_lock():
                replicas = list(changing)
                Replica.objects.filter(pk__in=changing.order_by().values("pk")).update(benchable=benchable)
                self.log_all(request, replicas, "benchable")
            self.message_user(
                request,
                f"{num(len(replicas))} replica{'s are' if len(replicas) > 1 else ' is'} {done} now.",
                messages.SUCCESS,
            )
            return None
        return self.confirmation(
            request,
            action="mark_benchable" if benchable else "unmark_benchable",
            title=f"Mark {num(number)} replica{'s' if number > 1 else ''} as {done}?",
            changes=[
                f"{r.name} ({r.variant.model.name}, {r.state}{', no endpoint' * (not r.endpoint)}) → {done}"
                for r in changing
            ],
            note=(
                "A measurement puts a benchable replica under full load; whoever it serves will notice."
                if benchable
                else "No measurement will touch them."
            ),
            button="Yes, mark" if benchable else "Yes, unmark",
        )


ADMINS = ((Replica, ReplicaAdmin),)
