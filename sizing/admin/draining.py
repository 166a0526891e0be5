"""The mark that replicas are on their way out: of some of them, or of all on a node."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.db.models import Count, F, QuerySet

from sizing.domain.specs import SERVING_STATES
from sizing.models import Node, Replica, Source
from sizing.templatetags.desk import num

NOTE = (
    "The mark stops nothing: it tells the desk that these replicas are on their way out. They no longer count"
    " as running, and hold their GPUs until they are gone."
)


def on_nodes(nodes: QuerySet[Node]) -> QuerySet[Replica]:
    """The replicas that serve on these nodes, or start to, by name; one over several nodes as a whole."""
    there = Replica.objects.filter(placements__gpu__node__in=nodes.order_by().values("pk"))
    found = Replica.objects.filter(pk__in=there.values("pk"), state__in=SERVING_STATES)
    return found.order_by("name").select_related("variant__model")


def line(replica: Replica) -> str:
    """What the mark changes of a replica, with its nodes."""
    nodes = sorted({placement.gpu.node.name for placement in replica.placements.all()})
    more = f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""
    where = f" on {', '.join(nodes[:3])}{more}" if nodes else ""
    return f"{replica.name} ({replica.variant.model.name}{where}): {replica.state} → draining"


def effects(draining: QuerySet[Replica]) -> list[str]:
    """For each model how many of its replicas run before and after, what falls below its minimum first."""
    going = Counter(draining.order_by().values_list("variant__model", flat=True))
    serving = Replica.objects.filter(variant__model__in=list(going), state__in=SERVING_STATES).order_by()
    rows = serving.values("variant__model").annotate(
        n=Count("pk"), name=F("variant__model__name"), least=F("variant__model__min_replicas")
    )
    found = []
    for row in rows:
        left = row["n"] - going[row["variant__model"]]
        below = left < row["least"]
        warning = f", below its minimum of {num(row['least'])}" if below else ""
        said = f"{row['name']}: {num(row['n'])} running → {num(left)}{warning}"
        found.append((not below, said))
    return [said for _, said in sorted(found)]


def kept_note(rows: QuerySet[Any], instead: str) -> str:
    """How many of the rows the cluster keeps, and what to do there instead; empty where it keeps none."""
    kept = rows.filter(source=Source.KUBERNETES).count()
    if not kept:
        return ""
    which = "One of them is" if kept == 1 else f"{num(kept)} of them are"
    return f" {which} kept by the cluster, whose next import or sync overwrites this: {instead}."


def plural(number: int, one: str) -> str:
    """`1 node`, `1,204 nodes`."""
    return f"{num(number)} {one}{'s' * (number != 1)}"
