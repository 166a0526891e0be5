"""Sentences that say why an answer does not fit, nearest to fitting first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from sizing.domain.fleet import Fleet
from sizing.domain.gpu_types import type_key
from sizing.domain.hardware import Hardware, Ints
from sizing.domain.preemption import Preemption
from sizing.domain.preemption.ledger import STOPPABLE_STATES
from sizing.domain.reasons import LADDER, RUNG, Survey
from sizing.domain.sizing import Count
from sizing.domain.specs import ReplicaSpec, VariantSpec
from sizing.domain.taints import untolerated
from sizing.domain.wording import NAMES_SHOWN, claim, names, needs, number, plural


def blocked_sentences(fleet: Fleet, counted: Count, now: Survey, preemption: Preemption | None) -> list[str]:
    """The answer in replicas, what stopping others gives, a line for each group of nodes, fragmentation."""
    return [
        headline(counted),
        *_stopping(fleet, counted, preemption),
        *_leftover_shares(counted, now),
        *_node_lines(now),
        *_fragmentation(now),
    ]


def headline(counted: Count) -> str:
    """The answer in replicas: how many of those that are missing fit, and what the others need."""
    reachable = min(counted.free_room, counted.more)
    missing = counted.more - reachable
    fits = "fits" if reachable == 1 else "fit"
    have = f"{number(reachable)} of {number(counted.more)} more replicas {fits}"
    if counted.allowed is not None and counted.allowed <= reachable:
        limit = counted.model.max_replicas or 0
        run = f"{plural(counted.current, 'replica')} {'runs' if counted.current == 1 else 'run'}"
        return f"{have}; max_replicas is {number(limit)} and {run}"
    need = "needs" if missing == 1 else "need"
    each = " each" if missing > 1 and counted.variant.nodes == 1 else ""
    return f"{have}; {number(missing)} more {need} {needs(counted.variant)}{each}"


def _stopping(fleet: Fleet, counted: Count, preemption: Preemption | None) -> list[str]:
    """What stopping replicas of lower priority gives, and which rule keeps it from giving more."""
    if preemption is None:
        return []
    lines = []
    short = counted.more - counted.free_room
    if preemption.victims:
        stopped = Counter(victim.model for victim in preemption.victims)
        whose = [f"{number(count)} of {model}" for model, count in sorted(stopped.items())]
        lines.append(
            f"stopping {plural(len(preemption.victims), 'replica')} of lower priority ({names(whose)})"
            f" gives {number(preemption.gives)} of {number(short)}"
        )
    if "protected_by_minimum" in preemption.reasons:
        kept = [
            f"{name}: {number(left)} left, minimum {number(fleet.models[name].min_replicas)}"
            for name, left in protected(fleet, counted, preemption.victims)
        ]
        lines.append(
            f"more could be had from replicas of lower priority, but minima protect them ({names(kept)})"
        )
    if "preemption_never" in preemption.reasons:
        lines.append(f"{counted.model.name} does not preempt (its policy is Never)")
    if "no_lower_priority" in preemption.reasons:
        stoppable = [one for one in fleet.of_model(counted.model.name) if one.state in STOPPABLE_STATES]
        own = ", or is its own" if _any_lower(fleet, counted, stoppable) else ""
        lines.append(
            f"what holds the rest has no lower priority than {counted.model.name}"
            f" ({number(counted.model.priority)}){own}"
        )
    return lines


def protected(fleet: Fleet, counted: Count, victims: Iterable[ReplicaSpec]) -> list[tuple[str, int]]:
    """Models whose minimum keeps replicas of lower priority from being stopped, and how many are left."""
    gone = {victim.name for victim in victims}
    found = []
    for name, model in sorted(fleet.models.items()):
        if name != counted.model.name and model.min_replicas > 0:
            left = [one for one in fleet.serving(name) if one.name not in gone]
            if _any_lower(fleet, counted, left):
                found.append((name, len(left)))
    return found


def _any_lower(fleet: Fleet, counted: Count, replicas: Iterable[ReplicaSpec]) -> bool:
    return any(fleet.priority(one) < counted.model.priority for one in replicas)


def _leftover_shares(counted: Count, now: Survey) -> list[str]:
    """Why shares on several nodes do not add up to more replicas."""
    nodes, total = counted.variant.nodes, int(now.taken.sum())
    if nodes == 1 or total < nodes or (counted.allowed is not None and counted.allowed <= counted.fitting):
        return []
    return [
        f"{plural(total, 'share')} of a replica fit in all, and {number(nodes)} on different nodes"
        f" make a replica: {number(counted.fitting)} {'fits' if counted.fitting == 1 else 'fit'}"
    ]


def _node_lines(now: Survey) -> list[str]:
    """One line for each code and, where it counts, each quantity; later rungs are nearer to fitting."""
    lines = []
    for rung in range(len(LADDER) - 1, -1, -1):
        there = now.rung == rung
        if not there.any():
            continue
        if rung in (RUNG["too_few_free_gpus"], RUNG["too_few_nodes"]):
            have = now.quantities(LADDER[rung])[1]
            assert have is not None
            for quantity in sorted(set(have[there].tolist()), reverse=True):
                lines.append(_line(now, rung, np.flatnonzero(there & (have == quantity))))
        else:
            lines.append(_line(now, rung, np.flatnonzero(there)))
    return lines


def _line(now: Survey, rung: int, nodes: Ints) -> str:
    hardware = now.fleet.hardware
    shown = nodes[:NAMES_SHOWN].tolist()
    node_names = [hardware.nodes[n].name for n in shown] + [""] * (len(nodes) - len(shown))
    line = f"{plural(len(nodes), 'node')} ({names(node_names)}): {say(now, rung, nodes)}"
    holders = sorted({name for n in shown for name in now.fleet.holders_on(n)})
    if LADDER[rung] == "too_few_free_gpus" and holders:
        where = " on those named" if len(nodes) > len(shown) else ""
        line += f"; held{where} by {names(holders)}"
    return line


def say(now: Survey, rung: int, nodes: Ints) -> str:
    """A code in words with the quantities of these nodes, all of that code."""
    code = LADDER[rung]
    _, have, _, need = now.quantities(code)
    here = "" if have is None else _span(have[nodes])
    one = here == "1"
    wanted = "" if need is None else f"{number(need)} {'is' if need == 1 else 'are'} needed"
    variant = now.variant
    if code in _WORDS:
        return _WORDS[code]
    if code == "gpu_type_mismatch":
        kinds = _types_on(now.fleet.hardware, nodes)
        return f"GPU type does not match ({names(kinds)})"
    if code == "selector_mismatch":
        lack = "lacks" if len(nodes) == 1 else "lack"
        return f"{lack} a label that is asked for ({names(_labels_wanted(variant))})"
    if code == "taint_not_tolerated":
        return f"taints are not tolerated ({names(_taints(now, nodes))})"
    if code == "partition_not_usable":
        if variant.gpus > 1 or variant.nodes > 1:
            return "only partitions, which take no replica of several GPUs"
        return "only partitions, which are used only where a variant names their type"
    if code == "fraction_below_need":
        return f"{claim(variant)} is {here} MiB, {number(need or 0)} MiB are needed"
    if code == "gpu_memory_too_small":
        if have is None or int(have[nodes].max()) < 0:
            return "the memory of the GPUs is unknown, and only claims of whole GPUs can use such"
        unknown = " or an unknown size" if int(have[nodes].min()) < 0 else ""
        return f"the GPUs have {here} MiB{unknown}, {number(need or 0)} MiB are needed"
    if code == "too_few_gpus":
        return f"{here} such {'GPU' if one else 'GPUs'} in all, {wanted} on one node"
    if code == "gpu_unhealthy":
        return f"{_of_all(now, nodes, here)} healthy, {wanted} on one node"
    if code == "used_outside":
        room = f"{'has' if one else 'have'} room beside what runs outside replicas"
        return f"{_gpus_of_all(now, nodes, here)} {room}, {wanted} on one node"
    if code == "too_few_free_gpus":
        what = "" if variant.whole_gpu else f" for {claim(variant)}"
        return f"{_of_all(now, nodes, here)} free{what}, {wanted} on one node"
    if code == "host_cpu_short":
        return f"{here} millicores of host CPU are left, {wanted}"
    if code == "host_memory_short":
        return f"{here} MiB of host memory are left, {wanted}"
    if code == "too_few_nodes":
        domain = f" of one {variant.topology_key}" if variant.topology_key else ""
        spans = f"the {number(variant.nodes)} nodes{domain} that a replica spans"
        return f"takes a share, but only {here} of {spans} do"
    return _takes(now, nodes)


_WORDS = {
    "no_gpus": "no GPUs",
    "node_not_ready": "not ready",
    "node_cordoned": "cordoned",
    "node_stale": "not seen lately",
    "pods_short": "its limit of pods is reached",
}


def _takes(now: Survey, nodes: Ints) -> str:
    taken = now.taken[nodes]
    one = max(taken.tolist()) == 1
    each = " each" if len(nodes) > 1 else ""
    takes = "takes" if len(nodes) == 1 else "take"
    if now.variant.nodes > 1:
        return f"{takes} {_span(taken)} {'share' if one else 'shares'} of a replica{each}"
    return f"{takes} {_span(taken)} more{each}"


def _of_all(now: Survey, nodes: Ints, here: str) -> str:
    """`3 of 8 GPUs are`, or `3 GPUs are` where the nodes differ in how many they have."""
    gpus = _gpus_of_all(now, nodes, here)
    return f"{gpus} {'is' if here == '1' or gpus.endswith('GPU') else 'are'}"


def _gpus_of_all(now: Survey, nodes: Ints, here: str) -> str:
    totals = set(now.fitting_gpus[nodes].tolist())
    if len(totals) != 1:
        return f"{here} {'GPU' if here == '1' else 'GPUs'}"
    return f"{here} of {plural(totals.pop(), 'GPU')}"


def _types_on(hardware: Hardware, nodes: Ints) -> list[str]:
    """GPU types of these nodes, each in one spelling; those of one node in its own."""
    if len(nodes) == 1:
        spelled = {type_key(gpu.type): gpu.type for gpu in reversed(hardware.nodes[int(nodes[0])].gpus)}
        return sorted(spelled.values())
    kinds = hardware.group_type[np.isin(hardware.group_node, nodes)]
    return sorted({hardware.type_names[kind] for kind in kinds.tolist()})


def _labels_wanted(variant: VariantSpec) -> list[str]:
    wanted = [f"{key}={value}" for key, value in variant.node_selector]
    if variant.nodes > 1 and variant.topology_key:
        wanted.append(variant.topology_key)
    return wanted


def _taints(now: Survey, nodes: Ints) -> list[str]:
    hardware = now.fleet.hardware
    sets = np.unique(hardware.taint_set[nodes]).tolist()
    return sorted(
        {
            f"{t.key}={t.value}:{t.effect}" if t.value else f"{t.key}:{t.effect}"
            for number_of_set in sets
            for t in untolerated(hardware.taint_sets[number_of_set], now.variant.tolerations)
        }
    )


def _span(values: Ints) -> str:
    """`3` or `2 to 5`; -1, which stands for unknown, is left out."""
    known = [value for value in values.tolist() if value >= 0]  # mostly one: of a node in a table
    if not known:
        return "an unknown number"
    low, high = min(known), max(known)
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def _fragmentation(now: Survey) -> list[str]:
    scattered = now.rung == RUNG["too_few_free_gpus"]
    free = np.where(scattered, now.all_free_gpus, 0)
    total = int(free.sum())
    if now.variant.gpus < 2 or total < now.variant.gpus:
        return []
    on_one = np.where(scattered, now.free_gpus, 0)
    best = int(on_one.argmax())
    name = now.fleet.hardware.nodes[best].name
    besides = "besides, " if (now.rung == RUNG["open"]).any() else ""
    most = number(int(on_one[best]))
    return [f"{besides}{number(total)} GPUs are free, but at most {most} on one node ({name})"]
