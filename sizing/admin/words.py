"""An answer of the target view in words: the sentence, the verdict, reason codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sizing.domain.answer import Answer
from sizing.domain.wording import names
from sizing.templatetags.desk import num

NODE_CODES = {
    "no_gpus": "has no GPUs",
    "gpu_type_mismatch": "GPU type does not match",
    "selector_mismatch": "labels do not match the variant's selector",
    "taint_not_tolerated": "a taint is not tolerated",
    "partition_not_usable": "partitions are not usable by this variant",
    "fraction_below_need": "the claimed share is smaller than the claimed size",
    "gpu_memory_too_small": "GPU memory is smaller than the claim",
    "too_few_gpus": "too few such GPUs of one type",
    "node_not_ready": "not ready",
    "node_cordoned": "cordoned",
    "node_stale": "not seen for too long",
    "gpu_unhealthy": "unhealthy GPUs are in the way",
    "used_outside": "GPU memory is used outside of replicas",
    "too_few_free_gpus": "too few free GPUs",
    "host_cpu_short": "host CPU is short",
    "host_memory_short": "host memory is short",
    "pods_short": "its limit of pods is reached",
    "too_few_nodes": "takes a share, but too few other nodes do",
    "open": "open",
}
NUMBERS = {
    "gpus": "GPUs",
    "partitions": "partitions",
    "healthy": "healthy GPUs",
    "usable": "usable GPUs",
    "nodes": "nodes that do",
    "free": "free GPUs",
    "need": "needed",
    "free_millis": "free millicores",
    "need_millis": "needed millicores",
    "free_mib": "free MiB",
    "need_mib": "needed MiB",
    "memory_mib": "MiB on its largest GPU",
    "claim_mib": "MiB claimed by share",
}


@dataclass(frozen=True)
class Verdict:
    """How the answer ends, told apart by word, sign and shape (`kind` is its CSS class)."""

    kind: str
    sign: str
    text: str


def verdict(answer: dict[str, Any]) -> Verdict:
    """The verdict of an answer."""
    if answer["more"] == 0:
        return Verdict("served", "✓", "already served")
    if not answer["fits"]:
        return Verdict("blocked", "✕", "does not fit")
    victims = (answer.get("preemption") or {}).get("victims") or []
    if victims or answer["more"] > answer["free_room"]:
        return Verdict(
            "preempts", "▲", f"fits by stopping {num(len(victims))}" if victims else "fits by preempting"
        )
    return Verdict("fits", "✓", "fits")


@dataclass(frozen=True)
class Sentence:
    """The answer in one sentence, in three parts: `verdict` is the one to look at."""

    before: str
    verdict: str
    after: str = "."

    def __str__(self) -> str:
        return f"{self.before}{self.verdict}{self.after}"


def counts(answer: Answer) -> dict[str, Any]:
    """Of an answer's public form what its sentence and its verdict need, and what costs nothing to tell."""
    counted = answer.count
    return {
        "needed": counted.needed,
        "current": counted.current,
        "more": counted.more,
        "surplus": counted.surplus,
        "room": answer.room,
        "free_room": counted.free_room,
        "fits": answer.fits,
        "preemption": {"victims": [{"model": victim.model} for victim in answer.reach.victims]},
    }


def sentence(answer: dict[str, Any]) -> Sentence:
    """The answer in one sentence, from its public form."""
    needed, current, more = answer["needed"], answer["current"], answer["more"]
    begin = f"{num(needed)} {_replicas(needed)} needed, {_run(current)}"
    if more == 0:
        surplus = answer["surplus"]
        spare = f", with {num(surplus)} to spare." if surplus else "."
        return Sentence(f"{begin}: ", "already served", spare)
    others = f"the other {num(more)}" if current else ("it" if more == 1 else f"the {num(more)}")
    if answer["fits"]:
        verb = "fits" if more == 1 else "fit"
        return Sentence(f"{begin}; {others} ", f"{verb}{_by_stopping(answer)}")
    room = answer["room"]
    if more == 1:
        return Sentence(f"{begin}; {others} ", "does not fit")
    if not room:
        return Sentence(f"{begin}; of {others} ", "none fits")
    return Sentence(
        f"{begin}; of {others} ",
        f"only {num(room)} {'fits' if room == 1 else 'fit'}{_by_stopping(answer)}",
    )


def _replicas(number: int) -> str:
    return "replica is" if number == 1 else "replicas are"


def _run(current: int) -> str:
    if current == 0:
        return "none runs"
    return f"{num(current)} {'runs' if current == 1 else 'run'}"


def _by_stopping(answer: dict[str, Any]) -> str:
    victims = (answer.get("preemption") or {}).get("victims") or []
    if not victims:
        return ""
    models = sorted({victim["model"] for victim in victims})
    shown = names(models)
    return f" by stopping {num(len(victims))} {'replica' if len(victims) == 1 else 'replicas'} of {shown}"


def node_reason(code: str) -> str:
    """A node's code in words; a code of a later version as itself."""
    return NODE_CODES.get(code, code.replace("_", " "))


def number_name(key: str) -> str:
    """What a quantity beside a code counts."""
    return NUMBERS.get(key, key.replace("_", " "))


def bound_words(bound: str | None) -> str:
    """What a measurement's bound says about it."""
    return {
        "edge": "edge: a higher load failed the SLO",
        "floor": "floor: at least this, no load failed the SLO",
    }.get(bound or "", "")
