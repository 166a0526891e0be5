"""What a node's page says beside its form: its GPUs, who holds them, what it takes and what it refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString

from sizing import snapshot
from sizing.admin.node_takes import may_view, takes_part
from sizing.admin.picture import draw, hues, legend, model_key, row_of
from sizing.domain.fleet import Fleet
from sizing.domain.hardware import UNLIMITED
from sizing.domain.picture import GpuPicture, NodePicture, node_picture
from sizing.domain.specs import CLOSING_EFFECTS, NodeSpec, ReplicaSpec, Taint
from sizing.models import Node, Replica, ServedModel
from sizing.templatetags.desk import num

GPUS_SHOWN = 64
REPLICAS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class HolderWords:
    """Who holds a part of a GPU."""

    name: str
    url: str
    claim: str
    state: str


@dataclass(frozen=True, slots=True)
class GpuRow:
    """A line of the table of GPUs."""

    picture: GpuPicture
    url: str
    holders: list[HolderWords]


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """A line of the table of replicas: what it holds here, and on how many other nodes it holds more."""

    spec: ReplicaSpec
    url: str
    model_url: str
    key: SafeString
    gpus: str
    elsewhere: int
    priority: int


def node_part(request: HttpRequest, node: Node) -> dict[str, Any]:
    """The page's part beside the form, in a constant number of queries."""
    fleet = snapshot.current().fleet
    number = fleet.hardware.node_number.get(node.name)
    if number is None:
        return {}
    picture, spec = node_picture(fleet, number), fleet.hardware.nodes[number]
    replicas = [fleet.replicas[name].spec for name in sorted(fleet.holders_on(number))]
    links, colors = Links(request, replicas), hues(fleet.models)
    return {
        "title": node.name,
        "subtitle": None,
        "picture": picture,
        "folded": "yes" if picture.gpus else "open",
        "sentence": sentence(picture, spec),
        "figures": figures(fleet, number, picture, node),
        "taints": [taint_words(taint) for taint in spec.taints],
        "labels": sorted(spec.labels.items()),
        **drawn(picture, colors),
        "gpu_rows": gpu_rows(node, picture, links),
        "more_gpus": max(len(picture.gpus) - GPUS_SHOWN, 0),
        "replica_rows": [
            replica_row(fleet, spec.name, one, links, colors) for one in replicas[:REPLICAS_SHOWN]
        ],
        "more_replicas": max(len(replicas) - REPLICAS_SHOWN, 0),
        **takes_part(request, fleet, number),
    }


class Links:
    """Addresses of what is named, for those who may follow them."""

    def __init__(self, request: HttpRequest, replicas: list[ReplicaSpec]) -> None:
        shown = replicas[:REPLICAS_SHOWN]
        self.may_replicas = may_view(request, "replica")
        self.may_models = may_view(request, "servedmodel")
        self.may_gpus = may_view(request, "gpu")
        names = [one.name for one in replicas[: REPLICAS_SHOWN + GPUS_SHOWN]]
        self._replicas = dict(Replica.objects.filter(name__in=names).values_list("name", "pk"))
        self._models = dict(
            ServedModel.objects.filter(name__in={one.model for one in shown}).values_list("name", "pk")
        )

    def replica(self, name: str) -> str:
        """A replica's page; empty where there is none to go to."""
        key = self._replicas.get(name)
        return reverse("admin:sizing_replica_change", args=[key]) if key and self.may_replicas else ""

    def model(self, name: str) -> str:
        """A model's page; empty where there is none to go to."""
        key = self._models.get(name)
        return reverse("admin:sizing_servedmodel_change", args=[key]) if key and self.may_models else ""


def sentence(picture: NodePicture, spec: NodeSpec) -> str:
    """The node in one sentence: open or closed, and what is free."""
    whole = sum(gpu.whole for gpu in picture.gpus)
    if not picture.gpus:
        free = "it has no GPUs"
    elif whole:
        free = f"{num(whole)} of {num(len(picture.gpus))} GPUs {'is' if whole == 1 else 'are'} free"
    elif any(gpu.free_mib and gpu.healthy for gpu in picture.gpus):
        free = f"none of {num(len(picture.gpus))} GPUs is wholly free, but parts are"
    else:
        free = f"none of {num(len(picture.gpus))} GPUs is free"
    if picture.closed:
        return f"Closed to new replicas: {' and '.join(picture.closed)}; {free}."
    closing = [taint_words(taint) for taint in spec.taints if taint.effect in CLOSING_EFFECTS]
    if closing:
        return f"Open only to what tolerates {' and '.join(closing)}; {free}."
    return f"Open; {free}."


def taint_words(taint: Taint) -> str:
    """A taint as kubectl writes it."""
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def figures(fleet: Fleet, number: int, picture: NodePicture, node: Node) -> list[tuple[str, str]]:
    """The node's figures, each with its name and unit."""
    gpus = picture.gpus
    shown = [
        ("GPUs", num(len(gpus))),
        ("free", num(sum(gpu.whole for gpu in gpus))),
        ("held", num(sum(bool(gpu.holders) for gpu in gpus))),
    ]
    if unhealthy := sum(not gpu.healthy for gpu in gpus):
        shown.append(("unhealthy", num(unhealthy)))
    for name, left, all_of_it in (
        ("millicores left", fleet.cpu_left[number], node.cpu_millis),
        ("host MiB left", fleet.host_memory_left[number], node.memory_mib),
        ("pods left", fleet.pods_left[number], node.pods),
    ):
        if all_of_it is not None and left < UNLIMITED // 2:
            shown.append((f"{name} of {num(all_of_it)}", num(int(left))))
    if node.cost_per_hour is not None:
        shown.append(("cost per hour", num(node.cost_per_hour)))
        if gpus:
            shown.append(("cost per GPU and hour", num(round(node.cost_per_hour / Decimal(len(gpus)), 2))))
    return shown


def drawn(picture: NodePicture, colors: Mapping[str, int]) -> dict[str, SafeString]:
    """The node's GPUs as one row of cells, without the name and the words that the page says anyway."""
    row = replace(row_of(picture, url="", hues=colors), name="", note="")
    counts = Counter(gpu.type for gpu in picture.gpus)
    types = ", ".join(f"{number} × {name}" for name, number in counts.items())
    image = draw(
        [row], name="node-gpus", title=f"GPUs of {picture.name}", about=f"{types}; see the table below"
    )
    return {"drawn": image, "legend": legend(cell.kind for cell in row.cells)}


def gpu_rows(node: Node, picture: NodePicture, links: Links) -> list[GpuRow]:
    """The first GPUs, each with who holds how much of it."""
    keys = dict(node.gpus.values_list("index", "pk"))
    return [
        GpuRow(
            picture=gpu,
            url=(
                reverse("admin:sizing_gpu_change", args=[keys[gpu.index]])
                if links.may_gpus and gpu.index in keys
                else ""
            ),
            holders=[
                HolderWords(
                    name=holder.replica.name,
                    url=links.replica(holder.replica.name),
                    claim=(
                        "all of it"
                        if holder.claim_mib is None or holder.claim_mib == gpu.memory_mib
                        else num(holder.claim_mib, "MiB")
                    ),
                    state="" if holder.replica.state == "ready" else holder.replica.state,
                )
                for holder in gpu.holders
            ],
        )
        for gpu in picture.gpus[:GPUS_SHOWN]
    ]


def replica_row(
    fleet: Fleet, node: str, replica: ReplicaSpec, links: Links, colors: Mapping[str, int]
) -> ReplicaRow:
    """A replica that holds something here."""
    here = sorted(index for name, indexes in replica.placement if name == node for index in indexes)
    return ReplicaRow(
        spec=replica,
        url=links.replica(replica.name),
        model_url=links.model(replica.model),
        key=model_key(colors[replica.model]),
        gpus=", ".join(map(str, here)),
        elsewhere=len({name for name, _ in replica.placement} - {node}),
        priority=fleet.priority(replica),
    )
