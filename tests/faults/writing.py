"""What each of several processes does that write the inventory at once, each by another way.

A process is told by the variable RACER which of them it is. It gives the statuses that it met, and what a
reader saw that should not be.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from sizing.inventory.document import Findings
from sizing.inventory.holding import check_holdings
from sizing.inventory.places import StoredPlaces
from sizing.inventory.stored import read_stored
from sizing.models import Node
from sizing.models.reads import consistent_reads
from sizing.services import inventory, kubernetes
from sizing.services.errors import DeskError
from tests.builders import H100, H100_MIB
from tests.cluster_lists import as_bytes, node, pod
from tests.concurrency.forms import filled, opened

SECONDS, LEAST = 2.0, 5
"""So long each goes on, and so often at least, however slow the machine is."""

NODES = 6
COUNTED = "counted"


def racer() -> int:
    return int(os.environ["RACER"])


def document(owner: str) -> bytes:
    """Six nodes of one owner, all of their GPUs held by three replicas of two nodes each."""
    gpus = [{"type": H100, "memory_mib": H100_MIB, "count": 2}]
    placed = [(f"{owner}-{2 * i}", f"{owner}-{2 * i + 1}") for i in range(NODES // 2)]
    return json.dumps(
        {
            "version": 1,
            "nodes": [{"name": f"{owner}-{i}", "gpus": gpus} for i in range(NODES)],
            "models": [{"name": "llama", "variants": [{"name": "two", "gpus": 2, "nodes": 2}]}],
            "replicas": [
                {
                    "name": f"replica-{number}",
                    "model": "llama",
                    "variant": "two",
                    "placement": [{"node": name, "gpus": [0, 1]} for name in names],
                }
                for number, names in enumerate(placed)
            ],
        }
    ).encode()


def load() -> str:
    inventory.load(document(f"racer{racer()}"), replace=True)
    return "loaded"


def bring() -> str:
    items = [node(f"kube-{i}", 4) for i in range(3)]
    kubernetes.bring(kubernetes.read(as_bytes(*items, *(pod(f"pod-{i}", f"kube-{i}") for i in range(3)))))
    return "brought"


def drain() -> str:
    client, url = _client(Client), "/admin/sizing/node/"
    marked = [str(pk) for pk in Node.objects.values_list("pk", flat=True)]
    asked = client.post(url, {"action": "drain", ACTION_CHECKBOX_NAME: marked})
    if asked.status_code != 200:
        return str(asked.status_code)
    form = filled(asked.content.decode())
    return str(client.post(url, form | {ACTION_CHECKBOX_NAME: marked}).status_code)


def look() -> str:
    """All of the inventory is of one owner, or of none, and adds up."""
    with consistent_reads():
        stored = read_stored().document
    owners = Counter(name.rpartition("-")[0] for name in stored.nodes)
    whole = all(number == (3 if owner == "kube" else NODES) for owner, number in owners.items())
    loaded = [owner for owner in owners if owner != "kube"]
    findings = Findings()
    check_holdings(stored, StoredPlaces(), findings)
    fine = whole and len(loaded) <= 1 and not findings.errors
    return "whole" if fine else f"half: {dict(owners)} {[str(one) for one in findings.errors]}"


def count_by_api() -> str:
    """Adds one to what was read, on condition that it is still so."""
    client, url = _client(APIClient), f"/api/v1/nodes/{COUNTED}"
    read = client.get(url)
    cost = read.json()["cost_per_hour"] + 1
    answer = client.patch(url, {"cost_per_hour": cost}, format="json", headers={"If-Match": read["ETag"]})
    return str(answer.status_code)


def count_by_form() -> str:
    """The same in the admin: 302 where it was saved, 200 where the form came back.

    With a label of its own, for two forms that say the same are no conflict.
    """
    client, url = _client(Client), f"/admin/sizing/node/{Node.objects.get(name=COUNTED).pk}/change/"
    form = opened(client, url, "node_form")
    cost = str(int(float(str(form["cost_per_hour"]))) + 1)
    changed = {"cost_per_hour": cost, "labels": json.dumps({"by": f"racer{racer()}"})}
    return str(client.post(url, form | changed).status_code)


def repeat(*ways: Callable[[], str]) -> dict[str, int]:
    """What this process met when it did its own of these again and again."""
    way, met = ways[racer() % len(ways)], Counter[str]()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end or met.total() < LEAST:
        try:
            met[way()] += 1
        except DeskError as refused:
            met[f"{refused.status} {refused.code}"] += 1
    return dict(met)


def all_at_once() -> dict[str, int]:
    return repeat(load, load, bring, drain, look)


def counting() -> dict[str, int]:
    return repeat(count_by_api, count_by_form)


def _client(kind: type[Any]) -> Any:
    client = kind(SERVER_NAME="localhost")
    client.force_login(User.objects.get(username="boss"))
    return client
