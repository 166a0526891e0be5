"""What an empty list says: why it may be empty, and what to do next, for those who may do it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.http import HttpRequest
from django.urls import reverse

LOAD, IMPORT = "sizing.inventoryload", "sizing.clusterimport"
MODELS = "sizing.servedmodel"

ADD = {
    LOAD: "Load an inventory file",
    IMPORT: "Import the Kubernetes cluster",
    "sizing.node": "Add a node by hand",
    "sizing.gpu": "Add a GPU by hand",
    "sizing.replica": "Add a replica by hand",
    MODELS: "Add a model by hand",
    "sizing.variant": "Add a variant",
    "sizing.benchprofile": "Add a bench profile",
    "sizing.measurement": "Enter a measurement by hand",
    "sizing.benchimport": "Import result files",
    "sizing.target": "Add a target",
    "sizing.mappingrule": "Add a mapping rule",
    "auth.group": "Add a group",
}
"""What leads to the form that adds one."""

WORDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "sizing.node": ("No node is known yet.", (LOAD, IMPORT, "sizing.node")),
    "sizing.gpu": ("No GPU is known yet. GPUs come with their nodes.", (LOAD, IMPORT, "sizing.node")),
    "sizing.replica": ("No replica is known yet.", (LOAD, IMPORT, "sizing.replica")),
    LOAD: ("No inventory file was loaded yet.", (LOAD,)),
    IMPORT: ("No list of the cluster was imported yet.", (IMPORT,)),
    "sizing.mappingrule": (
        "There is no rule: pods become replicas of models by their labels and command lines.",
        ("sizing.mappingrule",),
    ),
    MODELS: ("No model is known yet.", (LOAD, IMPORT, MODELS)),
    "sizing.variant": (
        "There is no variant yet. A variant says on how many GPUs a replica of a model runs.",
        (LOAD, "sizing.variant"),
    ),
    "sizing.benchprofile": (
        "There is no bench profile yet. Measurements are taken on one: a workload with an SLO.",
        (LOAD, "sizing.benchprofile"),
    ),
    "sizing.measurement": (
        "Nothing is measured yet. Open a model and press Refresh, or bring what was measured elsewhere.",
        ("sizing.benchimport", "sizing.measurement"),
    ),
    "sizing.refresh": ("No measurement was run yet. Open a model and press Refresh.", ()),
    "sizing.benchimport": ("No result files were imported yet.", ("sizing.benchimport",)),
    "sizing.target": (
        "No target is saved yet. Ask what a model would take, and save the question as a target.",
        ("sizing.target",),
    ),
    "sizing.answer": ("Nothing was asked yet. Open a model and ask what it would take.", ()),
    "sizing.apitoken": ("There is no API token. manage.py create_token USER --label LABEL makes one.", ()),
    "auth.group": ("There is no group yet.", ("auth.group",)),
}
BY_MODELS = ("sizing.measurement", "sizing.refresh", "sizing.target", "sizing.answer")
"""Where a model's page is the way."""


@dataclass(frozen=True, slots=True)
class Empty:
    """A sentence, and links as address and words."""

    sentence: str
    links: list[tuple[str, str]]


def empty_state(request: HttpRequest, model_admin: Any, narrowed: bool) -> Empty:
    """What a list without rows says; narrowed: whether it is searched or filtered."""
    opts = model_admin.opts
    if narrowed:
        return Empty(f"No {opts.verbose_name} matches.", [("?", "Clear the search and all filters")])
    sentence, to_add = WORDS.get(opts.label_lower, (f"There is no {opts.verbose_name} yet.", ()))
    registry = model_admin.admin_site._registry
    links = []
    if opts.label_lower in BY_MODELS:
        served = apps.get_model(MODELS)
        if served in registry and registry[served].has_view_permission(request):
            links.append((reverse("admin:sizing_servedmodel_changelist"), "See the models"))
    for label in to_add:
        table = apps.get_model(label)
        if table in registry and registry[table].has_add_permission(request):
            links.append((reverse(f"admin:{label.replace('.', '_')}_add"), ADD[label]))
    return Empty(sentence, links)
