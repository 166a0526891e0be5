"""The form that is written: canonical, exact, and lossless."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sizing.inventory.reading import read
from sizing.models import Measurement
from sizing.services.inventory import dump, dump_text
from sizing.services.inventory import load as load_bytes
from tests.inventory.documents import H100, load, revision, sound

pytestmark = pytest.mark.django_db

GPU = {"type": H100, "memory_mib": 80000}


def test_an_empty_desk_dumps_an_empty_inventory() -> None:
    sections = ("nodes", "profiles", "models", "measurements", "replicas", "targets")
    assert dump() == {"version": 1, **{section: [] for section in sections}}
    assert load_bytes(dump_text().encode(), replace=True).changed == 0


def test_every_key_is_written_with_its_value() -> None:
    load(sound(("nodes.0.cost_per_hour", 31.2), ("nodes.0.taints", [{"key": "a", "effect": "NoSchedule"}])))
    document = dump()
    assert document["nodes"][0] == {
        "name": "gpu-a1",
        "ready": True,
        "schedulable": True,
        "labels": {"zone": "a"},
        "taints": [{"key": "a", "effect": "NoSchedule"}],
        "cpu_millis": None,
        "memory_mib": None,
        "pods": None,
        "cost_per_hour": 31.2,
        "gpus": [{"type": H100, "memory_mib": 80000, "count": 4}],
    }
    assert document["profiles"] == [
        {
            "name": "chat",
            "input_tokens": 1024,
            "output_tokens": 256,
            "slo": {"ttft_ms": 500, "itl_ms": None, "e2e_ms": None, "percentile": 95},
            "arrival": "poisson",
            "refresh_every_h": None,
        }
    ]
    assert document["models"][0] | {"variants": None} == {
        "name": "llama",
        "priority": 0,
        "preemption_policy": "PreemptLowerPriority",
        "min_replicas": 0,
        "max_replicas": None,
        "default_profile": "chat",
        "workload": "model",
        "owner": "",
        "variants": None,
    }
    assert document["models"][0]["variants"][1] == {
        "name": "half",
        "nodes": 1,
        "gpus": 1,
        "gpu_memory_mib": None,
        "gpu_memory_fraction": 0.5,
        "gpu_types": [],
        "node_selector": {},
        "tolerations": [],
        "cpu_millis": 0,
        "memory_mib": 0,
        "topology_key": None,
    }
    assert document["measurements"] == [
        {
            "model": "llama",
            "variant": "tp2",
            "profile": "chat",
            "tok_per_sec": 1180.5,
            "measured_at": "2026-11-02T09:00:00Z",
            "source": "manual",
            "bound": None,
            "engine": "",
            "warnings": [],
        }
    ]
    assert document["replicas"][0] == {
        "name": "llama-0",
        "model": "llama",
        "variant": "tp2",
        "state": "ready",
        "started_at": None,
        "endpoint": "",
        "benchable": False,
        "placement": [{"node": "gpu-a1", "gpus": [0, 1]}],
    }
    assert document["targets"] == [
        {"model": "llama", "profile": "chat", "variant": None, "utilization": 1, "tokens_per_sec": 5000}
    ]


def test_gpus_that_differ_in_nothing_but_the_index_are_a_run() -> None:
    gpus = [
        {**GPU, "count": 2},
        {**GPU, "index": 4},
        {**GPU, "index": 5},
        {**GPU, "uuid": "GPU-1"},
        {**GPU, "healthy": False},
        {**GPU, "used_outside_mib": 5, "count": 2},
        {**GPU, "partition": True},
    ]
    load({"version": 1, "nodes": [{"name": "n", "gpus": gpus}]})
    assert dump()["nodes"][0]["gpus"] == [
        {**GPU, "count": 2},
        {"index": 4, **GPU},
        GPU,
        {"index": 6, "uuid": "GPU-1", **GPU},
        {**GPU, "healthy": False},
        {**GPU, "used_outside_mib": 5, "count": 2},
        {**GPU, "partition": True},
    ]
    assert load_bytes(dump_text().encode(), replace=True).changed == 0


def test_decimals_are_written_exactly() -> None:
    rates = ["0.1", "999999999999.999999", "1000000000000", "0.000001", "1180.5", "1200"]
    for rate in rates:
        document = sound(("measurements.0.tok_per_sec", Decimal(rate)))
        load(document, replace=True)
        for kind in ("yaml", "json"):
            text = dump_text(kind)
            assert f"tok_per_sec: {rate}," in text.replace('"', "")
            assert load_bytes(text.encode(), replace=True).changed == 0
        assert Measurement.objects.get().tok_per_sec == Decimal(rate)


@pytest.mark.parametrize(
    "text",
    ["no", "Yes", "null", "~", "1e3", "12", "1:30", "0x1F", "2026-11-02", "2026-11-02T09:00:00Z", "a: b",
     "a #b", "=", "- a", "{a}", "[a]", "*a", "&a", "!a", "%a", "@a", "`a", '"a"', "'a'", "a\\b", "é😀", "a,b",
     ".5", "<<", "-", "?", "a:", ":a", "http://10.0.0.7:8000/v1", "on", "NaN", ".inf", "0", "1_000", "x y",
     "n"],
)  # fmt: skip
def test_texts_that_look_like_something_else_stay_texts(text: str) -> None:
    load(sound(("models.0.owner", text), ("nodes.0.labels", {"no": text})))
    written = dump_text()
    # For the desk's own reader, and for one that knows YAML 1.1 only.
    for document in (read(written.encode()), yaml.safe_load(written), json.loads(dump_text("json"))):
        assert document["models"][0]["owner"] == text
        assert list(document["nodes"][0]["labels"].items()) == [("no", text)]


def test_names_are_sorted_and_variants_stand_by_preference() -> None:
    load({
        "version": 1,
        "nodes": [{"name": "b"}, {"name": "a"}, {"name": "B"}],
        "models": [{"name": "m", "variants": [{"name": "z"}, {"name": "a"}]}],
    })  # fmt: skip
    document = dump()
    assert [node["name"] for node in document["nodes"]] == ["B", "a", "b"]
    assert [variant["name"] for variant in document["models"][0]["variants"]] == ["z", "a"]


def test_two_equal_rows_are_written_once() -> None:
    load(sound())
    row = Measurement.objects.get()
    row.pk = None
    row.save()
    assert len(dump()["measurements"]) == 1


# Lossless, whatever is in it ---------------------------------------------------------------------

Objects = st.SearchStrategy[dict[str, Any]]

texts = st.text(st.characters(exclude_categories=("C", "Z"), include_characters=" "), max_size=12)
names = texts.filter(lambda t: t and t == t.strip())
keys = st.from_regex(r"[a-z]{1,5}(/[a-z]{1,5})?", fullmatch=True)
labels = st.dictionaries(keys, texts, max_size=3)
counts = st.integers(0, 10**9)
some = st.none() | counts


def decimals(low: str, high: str) -> st.SearchStrategy[Decimal]:
    return st.decimals(Decimal(low), Decimal(high), places=6)


moments = st.datetimes().map(lambda t: t.isoformat() + "Z")
taints = st.lists(
    st.fixed_dictionaries(
        {"key": keys, "value": texts, "effect": st.sampled_from(["NoSchedule", "NoExecute"])}
    ),
    max_size=2,
    unique_by=lambda t: (t["key"], t["effect"]),
)
tolerations = st.lists(
    st.fixed_dictionaries({"key": keys, "operator": st.just("Equal"), "value": texts, "effect": st.just("")})
    | st.just({"operator": "Exists"}),
    max_size=2,
)
gpus = st.lists(
    st.fixed_dictionaries(
        {"type": names, "memory_mib": st.none() | st.integers(1, 10**9)},
        optional={"healthy": st.booleans(), "partition": st.booleans(), "used_outside_mib": counts},
    )
    | st.fixed_dictionaries({"type": st.just("X"), "count": st.integers(1, 4)}),
    max_size=4,
)
nodes = st.fixed_dictionaries(
    {"name": names},
    optional={
        "ready": st.booleans(), "schedulable": st.booleans(), "stale": st.booleans(), "labels": labels,
        "taints": taints, "cpu_millis": some, "memory_mib": some, "pods": some, "gpus": gpus,
        "cost_per_hour": decimals("0", "999999999"),
    },
)  # fmt: skip
profiles = st.fixed_dictionaries(
    {
        "name": names,
        "input_tokens": st.integers(1, 10**9),
        "output_tokens": st.integers(1, 10**9),
        "slo": st.fixed_dictionaries(
            {"itl_ms": decimals("0.000001", "999999999"), "percentile": decimals("0.000001", "100")}
        ),
    },
    optional={
        "arrival": st.sampled_from(["poisson", "concurrency"]),
        "refresh_every_h": decimals("0.1", "9999"),
    },
)
variants: Objects = st.fixed_dictionaries(
    {"name": names},
    optional={
        "nodes": st.integers(1, 9), "gpus": st.integers(1, 9),
        "gpu_memory_mib": st.none() | st.integers(1, 10**9), "gpu_memory_fraction": decimals("0.000001", "1"),
        "gpu_types": st.lists(names, max_size=2, unique=True),
        "node_selector": labels, "tolerations": tolerations, "cpu_millis": counts, "memory_mib": counts,
        "topology_key": st.none() | keys,
    },
)  # fmt: skip
models: Objects = st.fixed_dictionaries(
    {
        "name": names.filter(lambda n: "/" not in n and n not in (".", "..")),
        "variants": st.lists(variants, max_size=3, unique_by=lambda v: v["name"]),
    },
    optional={
        "priority": st.integers(-(2**31), 2**31 - 1),
        "min_replicas": counts, "max_replicas": some, "owner": texts,
        "preemption_policy": st.sampled_from(["PreemptLowerPriority", "Never"]),
        "workload": st.sampled_from(["model", "other"]),
    },
)  # fmt: skip


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    document: dict[str, Any] = {
        "version": 1,
        "nodes": draw(st.lists(nodes, max_size=3, unique_by=lambda o: o["name"])),
        "profiles": draw(st.lists(profiles, max_size=2, unique_by=lambda o: o["name"])),
        "models": draw(st.lists(models, max_size=2, unique_by=lambda o: o["name"])),
    }
    pairs = [(m["name"], v["name"]) for m in document["models"] for v in m["variants"]]
    shapes = [p["name"] for p in document["profiles"]]
    if pairs and shapes:
        measurement = st.fixed_dictionaries(
            {
                "pair": st.sampled_from(pairs),
                "profile": st.sampled_from(shapes),
                "tok_per_sec": decimals("0", "1e12"),
                "measured_at": st.sampled_from(["2026-11-02T09:00:00Z", "2026-11-02"]) | moments,
            },
            optional={"source": texts, "engine": texts, "warnings": st.lists(texts, max_size=2)},
        )
        found = draw(st.lists(measurement, max_size=4, unique_by=lambda m: (m["pair"], m["tok_per_sec"])))
        for entry in found:
            entry["model"], entry["variant"] = entry.pop("pair")
        document["measurements"] = found
        document["targets"] = [
            {"model": pairs[0][0], "profile": shapes[0], "tokens_per_sec": draw(decimals("0.000001", "1e12"))}
        ]
    if pairs:
        document["replicas"] = [
            {
                "name": name,
                "model": model,
                "variant": variant,
                "state": "pending",
                "started_at": draw(moments),
            }
            for name, (model, variant) in zip(draw(st.sets(names, max_size=3)), pairs, strict=False)
        ]
    return document


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(document=documents(), kind=st.sampled_from(["yaml", "json"]))
def test_load_dump_load_is_lossless(document: dict[str, Any], kind: str) -> None:
    load(document, replace=True)
    text = dump_text(kind)
    before = revision()
    assert load_bytes(text.encode(), replace=True).changed == 0
    assert revision() == before
    load({"version": 1}, replace=True)
    load_bytes(text.encode())
    assert dump_text(kind) == text
