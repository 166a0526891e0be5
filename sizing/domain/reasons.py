"""Why a node takes no replica: one primary code for each node, with its quantities.

The codes are a ladder of filters. Each rung keeps what it allows of what the earlier ones left; a
node's code is the first rung that leaves too little. So the rungs up to `used_outside` say what no
stopping of replicas can mend, and the codes' counts add up to the number of nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sizing.domain.fleet import Fleet
from sizing.domain.hardware import Bools, Hardware, Ints
from sizing.domain.once import once
from sizing.domain.placement import group_shares, takes_claim, within_host
from sizing.domain.specs import WHOLE_GPU_OUTSIDE_LIMIT_MIB, VariantSpec

LADDER = (
    "no_gpus",
    "gpu_type_mismatch",
    "selector_mismatch",
    "taint_not_tolerated",
    "partition_not_usable",
    "fraction_below_need",
    "gpu_memory_too_small",
    "too_few_gpus",
    "node_not_ready",
    "node_cordoned",
    "node_stale",
    "gpu_unhealthy",
    "used_outside",
    "too_few_free_gpus",
    "host_cpu_short",
    "host_memory_short",
    "pods_short",
    "too_few_nodes",
    "open",
)
RUNG = {code: number for number, code in enumerate(LADDER)}
OPEN = RUNG["open"]


@dataclass(frozen=True)
class Survey:
    """One variant asked of every node, in order of node name.

    `rung` is the place of the node's code in `LADDER`; `taken` the shares of replicas that it takes
    alone (0 on a closed node). The other arrays are the quantities behind the codes, by node.
    """

    fleet: Fleet
    variant: VariantSpec
    rung: Ints
    taken: Ints
    fitting_gpus: Ints
    healthy_gpus: Ints
    without_outside_gpus: Ints
    free_gpus: Ints
    all_free_gpus: Ints
    partners: Ints

    @property
    def codes(self) -> list[str]:
        """The code of each node."""
        return [LADDER[r] for r in self.rung.tolist()]

    @property
    def fits(self) -> list[int]:
        """Shares of a replica that each node takes alone."""
        fits: list[int] = self.taken.tolist()
        return fits

    def numbers(self, node: int) -> dict[str, int | None]:
        """The quantities of a node's code: what is there, and what is needed."""
        code = LADDER[self.rung[node]]
        have_name, have, need_name, need = self.quantities(code)
        numbers: dict[str, int | None] = {}
        if have is not None:
            numbers[have_name] = int(have[node]) if have[node] >= 0 else None
        if need is not None:
            numbers[need_name] = need
        return numbers

    def quantities(self, code: str) -> tuple[str, Ints | None, str, int | None]:
        """What a code counts by node (-1: unknown) and what is needed, each with its name."""
        variant, fleet = self.variant, self.fleet
        if code == "gpu_type_mismatch":
            return "gpus", fleet.hardware.gpu_count, "", None
        if code == "partition_not_usable":
            return "partitions", fleet.hardware.gpu_count, "", None
        if code == "fraction_below_need":
            return "claim_mib", self.largest_claim, "need_mib", variant.gpu_memory_mib
        if code == "gpu_memory_too_small":
            return "memory_mib", self.largest_memory, "need_mib", variant.gpu_memory_mib
        if code == "too_few_gpus":
            return "gpus", self.fitting_gpus, "need", variant.gpus
        if code == "gpu_unhealthy":
            return "healthy", self.healthy_gpus, "need", variant.gpus
        if code == "used_outside":
            return "usable", self.without_outside_gpus, "need", variant.gpus
        if code in ("too_few_free_gpus", "open"):
            return "free", self.free_gpus, "need", variant.gpus
        if code == "host_cpu_short":
            return "free_millis", fleet.cpu_left, "need_millis", variant.cpu_millis
        if code == "host_memory_short":
            return "free_mib", fleet.host_memory_left, "need_mib", variant.memory_mib
        if code == "pods_short":
            return "free", fleet.pods_left, "need", 1
        if code == "too_few_nodes":
            return "nodes", self.partners, "need", variant.nodes
        return "", None, "", None

    @once
    def largest_memory(self) -> Ints:
        """By node: the largest memory of its usable GPUs, MiB; -1 where it is unknown."""
        return self._largest(self.fleet.hardware.memory)

    @once
    def largest_claim(self) -> Ints:
        """By node: the largest claim that the fraction makes on its usable GPUs, MiB."""
        fraction_alone = replace(self.variant, gpu_memory_mib=None)
        return self._largest(self.fleet.hardware.claims(fraction_alone))

    def _largest(self, values: Ints) -> Ints:
        hardware = self.fleet.hardware
        usable = hardware.group_usable(self.variant)[hardware.gpu_group]
        largest = np.full(len(hardware.nodes), -1, dtype=np.int64)
        np.maximum.at(largest, hardware.gpu_node[usable], values[usable])
        return largest


def survey(fleet: Fleet, variant: VariantSpec) -> Survey:
    """Find every node's code and quantities for a variant."""
    hardware = fleet.hardware
    rung = np.full(len(hardware.nodes), OPEN, dtype=np.int64)

    def stop(code: str, nodes: Bools) -> None:
        rung[(rung == OPEN) & nodes] = RUNG[code]

    allowed_groups = hardware.type_allowed(variant)[hardware.group_type]
    usable = hardware.group_usable(variant)[hardware.gpu_group]
    stop("no_gpus", hardware.gpu_count == 0)
    stop("gpu_type_mismatch", hardware.per_node(allowed_groups.astype(np.int64)) == 0)
    stop("selector_mismatch", ~hardware.selected(variant))
    stop("taint_not_tolerated", ~hardware.tolerated(variant))
    stop("partition_not_usable", _most(hardware, usable) == 0)
    usable = usable & _fraction_suffices(hardware, variant)
    stop("fraction_below_need", _most(hardware, usable) == 0)
    usable = usable & _memory_suffices(hardware, variant)
    fitting = _most(hardware, usable)
    stop("gpu_memory_too_small", fitting == 0)
    stop("too_few_gpus", fitting < variant.gpus)
    stop("node_not_ready", ~hardware.ready)
    stop("node_cordoned", ~hardware.schedulable)
    stop("node_stale", hardware.stale)
    usable = usable & hardware.healthy
    healthy = _most(hardware, usable)
    stop("gpu_unhealthy", healthy < variant.gpus)
    usable = usable & _outside_leaves_enough(hardware, variant)
    without_outside = _most(hardware, usable)
    stop("used_outside", without_outside < variant.gpus)
    usable = usable & takes_claim(fleet, variant)
    free_in_group = hardware.per_group(usable)
    free = hardware.most_per_node(free_in_group)
    stop("too_few_free_gpus", free < variant.gpus)
    stop("host_cpu_short", fleet.cpu_left < variant.cpu_millis)
    stop("host_memory_short", fleet.host_memory_left < variant.memory_mib)
    stop("pods_short", fleet.pods_left < 1)

    shares = group_shares(fleet, variant)
    taken = within_host(fleet, variant, shares)
    partners = _partners(fleet, variant, np.where(taken[hardware.group_node] > 0, shares, 0))
    if variant.nodes > 1:
        stop("too_few_nodes", partners < variant.nodes)
    return Survey(
        fleet=fleet,
        variant=variant,
        rung=rung,
        taken=taken,
        fitting_gpus=fitting,
        healthy_gpus=healthy,
        without_outside_gpus=without_outside,
        free_gpus=free,
        all_free_gpus=hardware.per_node(free_in_group),
        partners=partners,
    )


def _most(hardware: Hardware, gpus: Bools) -> Ints:
    """By node, the most of these GPUs that are of one type."""
    return hardware.most_per_node(hardware.per_group(gpus))


def _fraction_suffices(hardware: Hardware, variant: VariantSpec) -> Bools:
    """By GPU: the fraction is not below the size that is needed; unknown memory is the next rung's."""
    if variant.whole_gpu or variant.gpu_memory_fraction is None:
        return np.ones(len(hardware.gpu_node), dtype=bool)
    return (hardware.claims(variant) > 0) | ~hardware.known


def _memory_suffices(hardware: Hardware, variant: VariantSpec) -> Bools:
    """By GPU: known and at least the claim; a whole-GPU claim takes any."""
    if variant.whole_gpu:
        return np.ones(len(hardware.gpu_node), dtype=bool)
    return hardware.known & (hardware.memory >= hardware.claims(variant))


def _outside_leaves_enough(hardware: Hardware, variant: VariantSpec) -> Bools:
    """By GPU: a claim would fit beside what is used outside if no replica held any."""
    if variant.whole_gpu:
        return hardware.outside <= WHOLE_GPU_OUTSIDE_LIMIT_MIB
    return hardware.memory - hardware.outside >= hardware.claims(variant)


def _partners(fleet: Fleet, variant: VariantSpec, shares: Ints) -> Ints:
    """By node: of the types that it takes a share of, the most nodes of its domain that do so too."""
    hardware = fleet.hardware
    if not len(shares):
        return np.zeros(len(hardware.nodes), dtype=np.int64)
    taking = shares > 0
    domain = hardware.domain(variant)[hardware.group_node]
    key = domain * max(len(hardware.type_names), 1) + hardware.group_type
    count = np.bincount(key[taking], minlength=int(key.max()) + 1)
    return hardware.most_per_node(np.where(taking, count[key], 0))
