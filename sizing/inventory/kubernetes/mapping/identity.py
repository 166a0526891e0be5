"""Of which model a pod is a replica, and what says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sizing.inventory.kubernetes.facts import Listing, PodFacts
from sizing.inventory.kubernetes.mapping.commands import Serving, serving_of
from sizing.inventory.kubernetes.mapping.matching import named_by_rules
from sizing.inventory.kubernetes.mapping.names import OTHER_END, short
from sizing.inventory.kubernetes.mapping.owners import root_owner
from sizing.inventory.kubernetes.mapping.paths import name_in
from sizing.inventory.kubernetes.rules import Rule
from sizing.inventory.words import quoted
from sizing.models.fields import NAME_LENGTH, model_name_problem, name_problem

OWN_MODEL = "llmgw-admin/model"
OWN_VARIANT = "llmgw-admin/variant"
# https://llm-d.ai: the label by which its scheduler tells models apart. Values of labels have no slashes.
LLMD_MODEL = "llm-d.ai/model"
# https://kserve.github.io/website: on every pod of an InferenceService.
KSERVE_NAME = "serving.kserve.io/inferenceservice"


NOTHING = "nothing names a model"


@dataclass(frozen=True, slots=True)
class Identity:
    """What a pod is a replica of. `variant` is empty where nothing names it, `by` says what decided.

    With `workload` other it is no LLM: `model` is then its namespace and what owns it. `note` says why a
    name that was told could not be taken.
    """

    model: str
    variant: str
    by: str
    workload: str = "model"
    note: str = ""


def identify(
    pod: PodFacts, listing: Listing, rules: Sequence[Rule], problems: set[str] | None = None
) -> Identity:
    """Of which model the pod is a replica: by rules, its own labels, its command line, others' labels.

    The command line comes before the labels of llm-d, whose charts write the release there: what the server
    is told to be called is what it answers to.
    `problems` gathers rules that are left out, in words.
    """
    serving = serving_of(pod.containers, batch=root_owner(pod, listing).kind in ("Job", "CronJob"))
    found = (
        _by_rules(pod, listing, rules, problems)
        or _by_own_labels(pod)
        or _by_command(pod, serving)
        or _by_llmd(pod)
        or _by_path(pod, listing, serving)
        or _by_kserve(pod)
    )
    if found is None:
        return _other(pod, listing, NOTHING)
    if found.workload == "other":
        return _other(pod, listing, found.by)
    return _checked(found, pod, listing)


def _checked(found: Identity, pod: PodFacts, listing: Listing) -> Identity:
    """The identity, unless its names cannot be ones."""
    problem = model_name_problem(found.model)
    if problem:
        note = f"the model {quoted(found.model)} by {found.by} {problem}"
        return _other(pod, listing, found.by, note)
    problem = name_problem(found.variant) if found.variant else None
    if problem:
        return replace(found, variant="", note=f"the variant {quoted(found.variant)} by {found.by} {problem}")
    return found


def _other(pod: PodFacts, listing: Listing, by: str, note: str = "") -> Identity:
    """A workload that is no LLM, by the name of what owns it."""
    name = short(f"{pod.namespace}/{root_owner(pod, listing).name}", NAME_LENGTH - len(OTHER_END))
    if model_name_problem(name):
        name += OTHER_END
    return Identity(name, "", by, workload="other", note=note)


def _by_rules(
    pod: PodFacts, listing: Listing, rules: Sequence[Rule], problems: set[str] | None
) -> Identity | None:
    named = named_by_rules(pod, listing, rules, problems)
    if named is None:
        return None
    by = f"rule {quoted(named.rule)}"
    return Identity(named.model, named.variant, by, workload="model" if named.model else "other")


def _by_own_labels(pod: PodFacts) -> Identity | None:
    for where, values in (("label", pod.labels), ("annotation", pod.annotations)):
        model = values.get(OWN_MODEL, "").strip()
        if model:
            return Identity(model, _own_variant(pod), f"{where} {OWN_MODEL}")
    return None


def _own_variant(pod: PodFacts) -> str:
    return (pod.labels.get(OWN_VARIANT) or pod.annotations.get(OWN_VARIANT, "")).strip()


def _by_llmd(pod: PodFacts) -> Identity | None:
    label = pod.labels.get(LLMD_MODEL, "").strip()
    return Identity(label, _own_variant(pod), f"label {LLMD_MODEL}") if label else None


def _by_command(pod: PodFacts, serving: Serving | None) -> Identity | None:
    for told in serving.told if serving else ():
        name = name_in(told.name)
        if name:
            return Identity(name, _own_variant(pod), told.by)
    return None


def _by_path(pod: PodFacts, listing: Listing, serving: Serving | None) -> Identity | None:
    """A path that says nothing, as /mnt/models: what serves it has a name."""
    if serving is None or not serving.told:
        return None
    told = serving.told[0]
    service = _by_kserve(pod)
    if service is not None:
        return replace(service, by=f"{service.by}, for {told.by} is {quoted(told.name)}")
    owner = root_owner(pod, listing)
    by = f"{owner.kind} {quoted(owner.name)}, for {told.by} is {quoted(told.name)}"
    return Identity(owner.name, _own_variant(pod), by)


def _by_kserve(pod: PodFacts) -> Identity | None:
    name = pod.labels.get(KSERVE_NAME, "").strip()
    return Identity(name, _own_variant(pod), f"label {KSERVE_NAME}") if name else None
