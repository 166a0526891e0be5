"""The replicas of a model as its page lists them: how many in which state, and where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Prefetch
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from sizing.admin.model_page.may import may_see
from sizing.domain.specs import SERVING_STATES
from sizing.models import Gpu, Node, Placement, Replica, ServedModel
from sizing.templatetags.desk import age, num

SHOWN = 50
NODES_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Place:
    """The GPUs of a replica on one node. aside: what is odd about them."""

    node: str
    url: str
    gpus: str
    aside: str


@dataclass(frozen=True, slots=True)
class Running:
    """A line of the table."""

    replica: Replica
    url: str
    started: str
    places: Sequence[Place]
    more_nodes: int


def replicas_part(request: HttpRequest, model: ServedModel) -> dict[str, Any]:
    """The part of a model's page about its replicas, in three queries; empty for those who may not look."""
    if not may_see(request, "replica"):
        return {}
    of = Replica.objects.filter(variant__model=model)
    counts = dict(of.order_by().values_list("state").annotate(n=Count("pk")))
    total = sum(counts.values())
    where = Prefetch("placements", queryset=Placement.objects.select_related("gpu__node"))
    rows = of.select_related("variant").prefetch_related(where).order_by("variant__position", "name")[:SHOWN]
    now, links = timezone.now(), may_see(request, "node")
    return {
        "replica_states": _states(counts),
        "replica_bounds": _bounds(model, sum(counts.get(state, 0) for state in SERVING_STATES)),
        "replicas": [
            Running(
                replica=row,
                url=reverse("admin:sizing_replica_change", args=[row.pk]),
                started=age((now - row.started_at).total_seconds()) if row.started_at else "",
                places=(places := _places(row, links))[:NODES_SHOWN],
                more_nodes=max(len(places) - NODES_SHOWN, 0),
            )
            for row in rows
        ],
        "more_replicas": max(total - SHOWN, 0),
    }


def _states(counts: dict[str, int]) -> str:
    """`3 ready, 1 starting`, in the order of a replica's life."""
    return ", ".join(f"{num(counts[state])} {state}" for state in Replica.State.values if counts.get(state))


def _bounds(model: ServedModel, serving: int) -> str:
    """How many run against how many there shall be."""
    least, most = model.min_replicas, model.max_replicas
    allowed = f"at least {num(least)}, {f'at most {num(most)}' if most is not None else 'without a limit'}"
    odd = ""
    if serving < least:
        odd = f"; {num(least - serving)} too few"
    elif most is not None and serving > most:
        odd = f"; {num(serving - most)} too many"
    return f"{num(serving)} serve{'s' * (serving == 1)}, {allowed}{odd}"


def _places(replica: Replica, links: bool) -> list[Place]:
    gpus: dict[Node, list[Gpu]] = {}
    for placement in replica.placements.all():
        gpus.setdefault(placement.gpu.node, []).append(placement.gpu)
    return [
        Place(
            node.name,
            reverse("admin:sizing_node_change", args=[node.pk]) if links else "",
            ", ".join(str(gpu.index) for gpu in sorted(on, key=lambda gpu: gpu.index)),
            _aside(node, on),
        )
        for node, on in sorted(gpus.items(), key=lambda item: item[0].name)
    ]


def _aside(node: Node, gpus: Sequence[Gpu]) -> str:
    """What keeps this place from another replica like it."""
    sick = [str(gpu.index) for gpu in gpus if not gpu.healthy]
    said = [
        (not node.ready, "not ready"),
        (not node.schedulable, "cordoned"),
        (node.stale, "stale"),
        (bool(sick), f"GPU {', '.join(sick)} unhealthy"),
    ]
    return ", ".join(words for holds, words in said if holds)
