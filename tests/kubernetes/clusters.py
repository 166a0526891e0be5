"""Small random clusters: nodes of every kind in every condition, pods in every phase and shape.

Quantities come in every form that Kubernetes reads (the grammar of `resource.Quantity`), so that no reading
that knows only the usual ones passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.kubernetes.built import (
    AMD,
    CPX_LABELS,
    GPU,
    H100_LABELS,
    MI300X_LABELS,
    MIG_1G,
    MIG_3G,
    NVIDIA_TAINT,
    SHARED,
    TIME_SLICED,
    WITH_MIG,
    container,
    node,
    pod,
)

Object = dict[str, Any]

MIB = 2**20

# ---------------------------------------------------------------- quantities in every form


def decimal(value: int, shift: int) -> str:
    """`value` times ten to the minus `shift`, in full."""
    digits = str(value).rjust(shift + 1, "0")
    return f"{digits[:-shift]}.{digits[-shift:]}"


def counted(value: int) -> st.SearchStrategy[int | str]:
    """A number of devices or pods: whole, however it is written."""
    forms: list[int | str] = [value, str(value), str(value), f"{value}000m", f"{value}.0", f"{value}."]
    forms += [f"+{value}", f"{value}e0", f"{value}000E-3", f"{value}000000u", f"{decimal(value, 3)}k"]
    if value % 1000 == 0:
        forms.append(f"{value // 1000}k")
    return st.sampled_from(forms)


def millicores(value: int) -> st.SearchStrategy[int | str]:
    """CPU, given in thousandths."""
    forms: list[int | str] = [f"{value}m", f"{value}m", decimal(value, 3), f"{value}e-3", f"{value}000u"]
    forms += [f"{value}000000n", f"{decimal(value, 6)}k"]
    if value % 1000 == 0:
        forms += [value // 1000, str(value // 1000)]
    if value and value < 1000:
        forms.append(f".{value:03}")
    return st.sampled_from(forms)


def memory(value: int) -> st.SearchStrategy[int | str]:
    """Bytes."""
    forms: list[int | str] = [value, str(value), f"{value}000m", f"{decimal(value, 9)}G", f"{value}e0"]
    for unit, size in (("Ki", 2**10), ("Mi", 2**20), ("Gi", 2**30), ("Ti", 2**40)):
        if value % size == 0:
            forms += [f"{value // size}{unit}"] * 2
        elif value * 1000 % size == 0:
            forms.append(f"{decimal(value * 1000 // size, 3)}{unit}")
    return st.sampled_from(forms)


@st.composite
def quantities(draw: st.DrawFn, amounts: Mapping[str, int]) -> Object:
    """Amounts (cpu in thousandths, memory in bytes) as a resource list."""
    forms = {"cpu": millicores, "memory": memory}
    return {name: draw(forms.get(name, counted)(amount)) for name, amount in amounts.items()}


# ---------------------------------------------------------------- random clusters

KINDS = (
    "plain",
    "plain",
    "plain",
    "plain",
    "mig",
    "shared",
    "sliced",
    "amd",
    "cpx",
    "unlabeled",
    "bare",
    "cpu",
)
NODE_NAMES = ("gpu-a", "gpu-b", "gpu-c", "cpu-1")
TAINTS: tuple[Object, ...] = (
    NVIDIA_TAINT,
    {"key": "dedicated", "value": "rag", "effect": "NoSchedule"},
    {"key": "dedicated", "effect": "NoSchedule"},
    {"key": "maintenance", "effect": "NoExecute"},
    {"key": "spot", "value": "true", "effect": "PreferNoSchedule"},
)
FLAWS = ("withdrawn", "untold", "taints", "not ready", "cordoned", "deleting")
PHASES = ("Running", "Running", "Running", "Pending", "Succeeded", "Failed", "Unknown", None)
MEMORY_SIZES = (0, 64 * MIB, 1536 * MIB, 10_000 * MIB, 1_000_000_000, 2**30)


class Cluster(NamedTuple):
    """The objects of a cluster, nodes first."""

    nodes: tuple[Object, ...]
    pods: tuple[Object, ...]

    @property
    def objects(self) -> list[Object]:
        return [*self.nodes, *self.pods]


@st.composite
def devices(draw: st.DrawFn, kind: str) -> tuple[dict[str, int], dict[str, str]]:
    """The device resources of a node of a kind, and the labels that say what they are."""
    few = st.integers(0, 8)
    match kind:
        case "many":
            return {GPU: draw(st.sampled_from((8, 8, 7, 4)))}, H100_LABELS
        case "plain":
            return {GPU: draw(few)}, H100_LABELS
        case "mig":
            return {GPU: draw(few), MIG_1G: draw(st.integers(0, 14)), MIG_3G: draw(few)}, WITH_MIG
        case "shared":
            return {GPU: 0, SHARED: 4 * draw(st.integers(1, 4))}, TIME_SLICED
        case "sliced":
            shown = TIME_SLICED | {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-SHARED"}
            return {GPU: 4 * draw(st.integers(1, 4))}, shown
        case "amd":
            return {AMD: draw(st.integers(1, 8))}, MI300X_LABELS
        case "cpx":
            return {AMD: 8 * draw(st.integers(1, 4))}, CPX_LABELS
        case "unlabeled":
            return {GPU: draw(st.integers(1, 8))}, {}
        case "bare":
            return {}, H100_LABELS
    return {}, {}


def key_and_effect(taint: Object) -> tuple[str, str]:
    """What no two taints of a node share."""
    return taint["key"], taint["effect"]


@st.composite
def nodes(draw: st.DrawFn, name: str, whole_mib: bool = False, calm: bool = False) -> Object:
    """A node of any kind with up to two flaws; `whole_mib`: its memory is a whole number of MiB; `calm`: it
    has many GPUs and at most one flaw, so that its host decides."""
    found, labels = draw(devices("many" if calm else draw(st.sampled_from(KINDS))))
    flaws = draw(st.sets(st.sampled_from(FLAWS), max_size=1 if calm else 2))
    size = draw(st.sampled_from((4096, 16_384, 65_536, 1_031_000, 0))) * MIB
    host = {"cpu": draw(st.sampled_from((4000, 9000, 16_000, 96_000, 0))), "memory": size}
    host["pods"] = draw(st.sampled_from((110, 5, 3, 0)))
    capacity = host | found
    less = draw(st.sampled_from((1, 3, 100))) if "withdrawn" in flaws else 0
    allocatable = {key: max(0, amount - less) if key in found else amount for key, amount in capacity.items()}
    if not whole_mib:
        allocatable["memory"] = max(0, allocatable["memory"] - draw(st.sampled_from((0, 1, 500, 1_000_000))))
    if "untold" in flaws:
        del allocatable[draw(st.sampled_from(tuple(host)))]
    taints = []
    if "taints" in flaws:
        # The API server refuses two of one key and effect.
        of = lambda taint: (taint["key"], taint["effect"])  # noqa: E731
        taints = [
            dict(one) for one in draw(st.lists(st.sampled_from(TAINTS), min_size=1, max_size=2, unique_by=of))
        ]
    ready = draw(st.sampled_from(("False", "Unknown", None))) if "not ready" in flaws else "True"
    cordoned = True if "cordoned" in flaws else draw(st.sampled_from((None, False)))
    if cordoned and draw(st.booleans()):
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    if ready == "False" and draw(st.booleans()):
        taints.append({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})
    if ready == "Unknown" and draw(st.booleans()):
        taints += [
            {"key": "node.kubernetes.io/unreachable", "effect": effect}
            for effect in ("NoSchedule", "NoExecute")
        ]
    return node(
        name,
        draw(quantities(capacity)),
        draw(quantities(allocatable)),
        ready=ready,
        unschedulable=cordoned,
        taints=taints,
        labels=labels | {"kubernetes.io/hostname": name},
        deleting="deleting" in flaws,
    )


@st.composite
def containers(draw: st.DrawFn, resources: Sequence[str], always: bool = False, calm: bool = False) -> Object:
    """A container that asks for some of the resources, in requests, in limits, or in both; `calm`: in
    requests, for CPU and memory too."""
    asks: dict[str, int] = {}
    if calm or draw(st.booleans()):
        asks["cpu"] = draw(st.sampled_from((0, 1, 100, 250, 1000, 3900)))
    if calm or draw(st.booleans()):
        asks["memory"] = draw(st.sampled_from(MEMORY_SIZES))
    for resource in draw(st.sets(st.sampled_from(resources), max_size=2)) if resources else ():
        asks[resource] = draw(st.sampled_from((0, 1, 1, 2, 5)))
    found = container(always=always)
    match "requests" if calm else draw(st.sampled_from(("limits", "both", "less", "null", "none"))):
        case "requests":
            found["resources"] = {"requests": draw(quantities(asks)), "limits": None}
        case "limits":
            found["resources"] = {"limits": draw(quantities(asks))}
        case "both":
            found["resources"] = {"requests": draw(quantities(asks)), "limits": draw(quantities(asks))}
        case "less":
            # Hosts may be asked for less than the limit; devices never, but a request may be left out.
            requests = {key: amount // 2 for key, amount in asks.items() if key in ("cpu", "memory")}
            found["resources"] = {"requests": draw(quantities(requests)), "limits": draw(quantities(asks))}
        case "null":
            found["resources"] = draw(st.sampled_from((None, {"requests": None, "limits": None})))
        case "none":
            del found["resources"]
    return found


@st.composite
def pods(draw: st.DrawFn, number: int, where: Sequence[tuple[str | None, Sequence[str]]]) -> Object:
    """A pod somewhere, of at most three containers and three that come before; `where` are the nodes that
    it may be on and what it may ask for there."""
    on, resources = draw(st.sampled_from(where))
    before = [
        draw(containers(resources, always=draw(st.booleans())))
        for _ in range(draw(st.sampled_from((0, 0, 1, 2, 3))))
    ]
    main = [draw(containers(resources)) for _ in range(draw(st.integers(1, 3)))]
    for position, one in enumerate([*before, *main]):
        one["name"] = f"c{position}"
    spec: Object = {}
    if draw(st.booleans()):
        spec["priority"] = draw(st.sampled_from((-1, 0, 1000, 2_000_001_000)))
    found = pod(
        f"pod-{number}",
        on,
        main,
        phase=draw(st.sampled_from(PHASES)) if on else "Pending",
        init=before,
        overhead=draw(st.sampled_from((None, None, {"cpu": "250m", "memory": "120Mi"}))),
        deleting=draw(st.sampled_from((False, False, False, True))),
        number=number + 1,
        **spec,
    )
    if draw(st.booleans()):
        found["metadata"]["ownerReferences"] = [
            {
                "apiVersion": "apps/v1",
                "kind": draw(st.sampled_from(("ReplicaSet", "StatefulSet", "DaemonSet", "Job"))),
                "name": draw(st.sampled_from(("llama-7d4b9c", "embed", "nightly"))),
                "controller": True,
            }
        ]
    if draw(st.sampled_from((False, False, False, True))):
        found["spec"]["resources"] = {"requests": draw(quantities({"cpu": 500, "memory": 4096 * MIB}))}
    if on and draw(st.sampled_from((False, False, True))):
        found["status"] |= draw(resizing(main[0]["name"]))
    if on is None and draw(st.booleans()):
        found["status"]["nominatedNodeName"] = NODE_NAMES[0]
    return found


@st.composite
def running_pods(draw: st.DrawFn, number: int, where: Sequence[tuple[str | None, Sequence[str]]]) -> Object:
    """A pod of one container that runs somewhere."""
    on, resources = draw(st.sampled_from(where))
    return pod(f"pod-{number}", on, [draw(containers(resources, calm=True))], number=number + 1)


@st.composite
def resizing(draw: st.DrawFn, name: str) -> Object:
    """The part of a pod's status that says that a container has another size than it asks for."""
    given = {"cpu": draw(st.sampled_from((50, 2000))), "memory": draw(st.sampled_from(MEMORY_SIZES))}
    found: Object = {"name": name, "resources": {"requests": draw(quantities(given))}}
    if draw(st.booleans()):
        found["allocatedResources"] = draw(quantities(given | {"cpu": 700}))
    status: Object = {"containerStatuses": [found]}
    if draw(st.booleans()):
        reason = draw(st.sampled_from(("Infeasible", "Deferred")))
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return status


def offered(one: Object) -> list[str]:
    """The device resources that a node names."""
    return [key for key in one["status"]["capacity"] if "/" in key]


@st.composite
def clusters(draw: st.DrawFn, whole_mib: bool = False) -> Cluster:
    """A few nodes and pods. Each pod asks for what its node has; some wait, or are on a node that is gone.
    Half of the clusters are calm: pods simply run on nodes that are mostly sound."""
    calm = draw(st.booleans())
    names = draw(st.lists(st.sampled_from(NODE_NAMES), min_size=1, unique=True))
    machines = [draw(nodes(name, whole_mib, calm)) for name in names]
    where: list[tuple[str | None, Sequence[str]]] = [
        (one["metadata"]["name"], offered(one)) for one in machines for _ in range(3)
    ]
    if calm:
        kind = running_pods
    else:
        kind = pods
        where += [(None, [GPU, MIG_1G]), ("gone", [GPU])]
    held = [draw(kind(number, where)) for number in range(draw(st.integers(1, 7)))]
    return Cluster(tuple(machines), tuple(held))
