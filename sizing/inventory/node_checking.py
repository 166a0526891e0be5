"""The shape of a node and its GPUs in an inventory file."""

from __future__ import annotations

from decimal import Decimal

from sizing.inventory import scheduling
from sizing.inventory.document import GpuEntry, NodeEntry
from sizing.inventory.fields import Fields
from sizing.models.fields import LARGEST_COUNT, name_problem

MOST_GPUS = 10_000
"""GPUs, or slices of them, on one node; `count` could ask for any number."""

MOST_GPUS_IN_ALL = 1_000_000
"""GPUs of a document."""


def read_node(fields: Fields, at: int, others: int = 0) -> NodeEntry | None:
    """A node, or None where its name cannot be used. `others`: GPUs of the nodes before it."""
    name = fields.name("name", name_problem)
    gpus = _read_gpus(fields, MOST_GPUS_IN_ALL - others) if fields.has("gpus") else None
    unsure = fields.broken
    entry = NodeEntry(
        name=name,
        ready=fields.flag("ready", True),
        schedulable=fields.flag("schedulable", True),
        stale=fields.flag("stale", False),
        labels=scheduling.read_labels(fields, "labels"),
        taints=scheduling.read_taints(fields, "taints"),
        cpu_millis=fields.whole("cpu_millis", None),
        memory_mib=fields.whole("memory_mib", None),
        pods=fields.whole("pods", None),
        cost_per_hour=fields.number("cost_per_hour", None, Decimal(LARGEST_COUNT), zero=True, most=False),
        source=fields.source(),
        gpus=gpus,
        at=at,
        broken=unsure,
    )
    fields.done()
    return entry if name is not None else None


def _read_gpus(fields: Fields, room: int) -> dict[int, GpuEntry]:
    gpus: dict[int, GpuEntry] = {}
    highest = -1
    for at, child in enumerate(fields.children("gpus")):
        if child.is_mapping:
            highest = _read_run(child, at, gpus, highest, room)
        fields.broken |= child.broken
        child.done()
    return gpus


def _read_run(fields: Fields, at: int, gpus: dict[int, GpuEntry], highest: int, room: int) -> int:
    """One entry of a list of GPUs: one GPU, or a run of them. Gives the highest index so far."""
    kind = fields.name("type", name_problem)
    memory = fields.whole("memory_mib", None, 1)
    uuid = fields.text("uuid")
    healthy = fields.flag("healthy", True)
    outside = fields.whole("used_outside_mib", 0)
    partition = fields.flag("partition", False)
    count: int = fields.whole("count", 1, 1, MOST_GPUS)
    index: int | None = None
    if fields.raw("index") is not None:
        index = fields.whole_value("index", fields.raw("index"), 0, LARGEST_COUNT, None)
        if index is None:
            return highest
        if count > 1:
            fields.error("count", "cannot be more than 1 where there is an index")
            count = 1
    if uuid and count > 1:
        fields.error("uuid", "names one GPU, but count is more than 1")
        uuid = ""
    start = highest + 1 if index is None else index
    if len(gpus) + count > MOST_GPUS:
        fields.error("count", f"makes more than {MOST_GPUS:,} GPUs on one node")
        return highest
    if len(gpus) + count > room:
        fields.error("count", f"makes more than {MOST_GPUS_IN_ALL:,} GPUs in the document")
        return highest
    if start + count - 1 > LARGEST_COUNT:
        fields.error("", f"makes a GPU index above {LARGEST_COUNT}")
        return highest
    if start in gpus:
        # Only a given index can collide: the others come after the highest.
        fields.error("index", f"{start} is also gpus[{gpus[start].at}]")
        return highest
    for number in range(start, start + count):
        gpus[number] = GpuEntry(number, kind or "", memory, uuid, healthy, outside, partition, at)
    return max(highest, start + count - 1)
