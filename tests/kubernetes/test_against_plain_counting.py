"""Reading, counting and the report against a count by hand, on random clusters.

`HYPOTHESIS_PROFILE=thorough` tries many more.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sizing.inventory.kubernetes.counted import Counted
from sizing.inventory.kubernetes.counting import count
from sizing.inventory.kubernetes.quantity import QuantityError, read_quantity
from sizing.inventory.kubernetes.reading import read_listing
from sizing.inventory.kubernetes.report import report
from tests.kubernetes import plain_counting
from tests.kubernetes.built import GPU, MIG_1G, Object, listing
from tests.kubernetes.clusters import Cluster, clusters, pods
from tests.kubernetes.plain_counting import Row

EXAMPLES = 2000 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 100
trials = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


def counted(objects: Sequence[Object]) -> Counted:
    return count(read_listing(json.dumps(listing(objects)).encode()))


def as_json(cluster: Counted) -> dict[str, Any]:
    """The report as scripts get it: through JSON."""
    found: dict[str, Any] = json.loads(json.dumps(report(cluster)))
    return found


def reported(source: bytes) -> dict[str, Any]:
    return as_json(count(read_listing(source)))


def as_reported(row: Row) -> dict[str, int]:
    found = {
        "capacity": row.capacity,
        "allocatable": row.allocatable,
        "used": row.used,
        "free": row.free,
    }
    return found | ({"overcommitted": row.overcommitted} if row.overcommitted else {})


@trials
@given(pods(0, [("gpu-a1", (GPU, MIG_1G))]))
def test_a_pod_is_booked_for_what_the_worst_moment_of_its_start_needs(one: Object) -> None:
    found = read_listing(json.dumps(listing([one])).encode())
    [facts] = found.pods.values()
    assert facts.requests == {name: amount for name, amount in plain_counting.request(one).items() if amount}


SHORT = re.compile(r"[+-]?([0-9]{1,5}\.?[0-9]{0,9}|\.[0-9]{1,9})([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?")


@settings(trials, max_examples=EXAMPLES * 5)
@given(
    st.from_regex(SHORT, fullmatch=True) | st.text("0123.+-emkKMGi", max_size=5),
    st.sampled_from(("cpu", "memory", GPU)),
)
def test_a_quantity_is_read_as_its_grammar_says(written: str, resource: str) -> None:
    try:
        value = plain_counting.quantity(written)
        whole = value.denominator == 1 or "/" not in resource
        expected = plain_counting.units(resource, written) if whole and value >= 0 else None
    except ValueError:
        expected = None
    try:
        assert read_quantity(resource, written) == expected
    except QuantityError:
        # Beyond what any node has it may be refused as well.
        assert expected is None or value > 10_000


@trials
@given(clusters())
def test_every_node_is_counted_and_told_to_be_open_or_closed(cluster: Cluster) -> None:
    nodes = counted(cluster.objects)
    told = as_json(nodes)["nodes"]
    plain = plain_counting.count(cluster.objects)
    assert set(told) == set(plain)
    for name, node in plain.items():
        assert told[name]["resources"] == {resource: as_reported(row) for resource, row in node.rows.items()}
        assert sorted(told[name]["blocked_by"]) == sorted(node.codes())
        assert told[name]["schedulable"] is (not node.codes())
        for resource in ("cpu", "memory", "pods"):
            allocatable = getattr(nodes.nodes[name].host, resource)
            if resource not in node.host:
                assert allocatable is None
                continue
            row = node.host[resource]
            used = getattr(nodes.nodes[name].host, f"{resource}_used")
            assert (allocatable, used) == (row.allocatable, row.used)


SUMS = ("allocatable", "used", "free_all", "free_schedulable")


@trials
@given(clusters())
def test_the_sums_are_right_and_pods_that_hold_nothing_of_a_known_node_are_told_apart(
    cluster: Cluster,
) -> None:
    found = as_json(counted(cluster.objects))
    sums: dict[str, dict[str, int]] = {}
    for node in plain_counting.count(cluster.objects).values():
        for resource, row in node.rows.items():
            total = sums.setdefault(resource, dict.fromkeys(SUMS, 0))
            total["allocatable"] += row.allocatable
            total["used"] += row.used
            total["free_all"] += row.free
            total["free_schedulable"] += 0 if node.codes() else row.free
    told = found["cluster"]
    assert {name: {key: told[name][key] for key in SUMS} for name in told if "/" in name} == sums
    orphans, unplaced, leaving = (
        {entry["pod"] for entry in found.get(key, ())}
        for key in ("orphan_pods", "pods_unplaced", "soon_free")
    )
    held = plain_counting.names(cluster.objects, held=True)
    deleted = {
        f"llm/{one['metadata']['name']}" for one in cluster.pods if "deletionTimestamp" in one["metadata"]
    }
    assert orphans == plain_counting.names(cluster.objects, held=True, known=False)
    assert unplaced == plain_counting.names(cluster.objects, held=False)
    assert leaving == held & deleted


# ---------------------------------------------------------------- however it is written


def kind_by_kind(objects: Sequence[Object]) -> list[Object]:
    """A NodeList and a PodList, whose items need not say what they are."""
    found = []
    for kind in ("Node", "Pod"):
        items = [one for one in objects if one["kind"] == kind]
        bare = [{key: one[key] for key in one if key not in ("kind", "apiVersion")} for one in items]
        found.append({"apiVersion": "v1", "kind": f"{kind}List", "metadata": {}, "items": bare})
    return found


def apart(value: Any) -> Any:
    """The same with nothing in it shared: YAML would write that as an anchor, and kubectl writes none."""
    return json.loads(json.dumps(value))


FORMS: dict[str, Callable[[Sequence[Object]], str]] = {
    "indented": lambda objects: json.dumps(listing(objects), indent=4),
    "array": lambda objects: json.dumps(list(objects)),
    "lists side by side": lambda objects: "\n".join(json.dumps(one) for one in kind_by_kind(objects)),
    "lists in a row": lambda objects: "".join(json.dumps(one, indent=1) for one in kind_by_kind(objects)),
    "a line each": lambda objects: "\n".join(json.dumps(one) for one in objects) + "\n",
    "yaml": lambda objects: yaml.safe_dump(apart(listing(objects))),
    "yaml documents": lambda objects: yaml.safe_dump_all(apart(list(objects)), explicit_start=True),
}
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-be-sig")


def encoded(text: str, encoding: str, line_end: str) -> bytes:
    text = text.replace("\n", line_end)
    if encoding == "utf-16-be-sig":
        return b"\xfe\xff" + text.encode("utf-16-be")
    return text.encode(encoding)


@pytest.mark.parametrize("form", FORMS)
@settings(trials, max_examples=EXAMPLES // 5)
@given(cluster=clusters(), encoding=st.sampled_from(ENCODINGS), line_end=st.sampled_from(("\n", "\r\n")))
def test_every_form_of_a_list_says_the_same(
    form: str, cluster: Cluster, encoding: str, line_end: str
) -> None:
    plain = as_json(counted(cluster.objects))
    found = reported(encoded(FORMS[form](cluster.objects), encoding, line_end))
    assert found == plain


@trials
@given(clusters(), st.randoms(use_true_random=False))
def test_neither_order_nor_repeats_matter(cluster: Cluster, chance: Any) -> None:
    shuffled = [*cluster.objects, *chance.choices(cluster.objects, k=3)]
    chance.shuffle(shuffled)
    plain = as_json(counted(cluster.objects))
    found = as_json(counted(shuffled))
    for both in (plain, found):
        both.pop("warnings", None)  # that there are repeats may be said
    assert found == plain


# ---------------------------------------------------------------- whatever is written

SPOILED: tuple[Any, ...] = (None, [], {}, "", "x", 0, -1, 2.5, True, [None], {"a": None}, "9" * 400, [{}])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything inside."""
    found = [path] if path else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        found += places(one, (*path, key))
    return found


@trials
@given(st.data())
def test_one_thing_that_is_spoiled_harms_at_most_its_own_object(data: st.DataObject) -> None:
    cluster = data.draw(clusters())
    whole = apart(listing(cluster.objects))
    path = data.draw(st.sampled_from([p for p in places(whole["items"]) if len(p) > 1]))
    inner: Any = whole["items"]
    kind, name = inner[path[0]]["kind"], inner[path[0]]["metadata"]["name"]
    untouched = [one for one in cluster.nodes if one["metadata"]["name"] != name]
    plain = plain_counting.count(cluster.objects)
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = data.draw(st.sampled_from(SPOILED))
    nodes = reported(json.dumps(whole).encode())["nodes"]
    for one in untouched:
        found = nodes[one["metadata"]["name"]]
        if kind == "Node":
            assert set(found["blocked_by"]) == plain[one["metadata"]["name"]].codes()
        assert set(found["resources"]) >= set(plain[one["metadata"]["name"]].rows) - {GPU}
