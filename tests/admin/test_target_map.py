"""The map on the Target page: where new replicas would go, and who would stop."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags

from sizing.admin.target.map import AnswerMap
from sizing.models import BenchProfile, Node, ServedModel
from tests import builders
from tests.admin.cluster import person


def asked(client: Client, model: ServedModel, **question: str) -> tuple[AnswerMap | None, str]:
    """The map of an answer, and the page around it."""
    address = reverse("admin:sizing_servedmodel_target", args=[model.pk])
    response = client.get(address, {"tokens_per_sec": "2000", **question})
    assert response.status_code == 200
    return response.context["map"], response.content.decode()


def told(svg: str) -> list[str]:
    """What the cells of a picture say."""
    return re.findall(r"<title>(GPU[^<]+)</title>", svg)


@pytest.fixture
def on_chat(db: None) -> BenchProfile:
    return builders.profile("chat")


@pytest.fixture
def crowded(on_chat: BenchProfile) -> ServedModel:
    """gpu-a has half its GPUs free; batch, of lower priority, fills gpu-b; gpu-c is cordoned."""
    llama = builders.model("llama", priority=100)
    builders.measurement(builders.variant(llama, "tp4", 4), on_chat)
    batch = builders.variant(builders.model("batch"), "tp1", 1)
    first, second = builders.node("gpu-a"), builders.node("gpu-b")
    builders.node("gpu-c", schedulable=False)
    for index in range(4):
        builders.replica(f"held-{index}", builders.variant(llama, f"v{index}", 1), first, (index,))
        builders.replica(f"batch-{index}", batch, second, (2 * index, 2 * index + 1))
    return llama


@pytest.fixture
def shared(on_chat: BenchProfile) -> ServedModel:
    """A third of a GPU each; gpu-a runs one replica on its GPU 1, gpu-b is empty."""
    small = builders.model("small")
    third = builders.variant(small, "third", 1, gpu_memory_mib=27_000)
    builders.measurement(third, on_chat)
    builders.replica("small-0", third, builders.node("gpu-a", 2), (1,))
    builders.node("gpu-b", 2)
    return small


def test_the_map_shows_the_nodes_that_change_before_and_after(crowded: ServedModel, viewer: Client) -> None:
    # Four run, of other variants and unmeasured: two of tp4 are needed, one of which fits.
    found, page = asked(viewer, crowded)
    assert found is not None
    assert found.sentence == (
        "2 new replicas (new 1 to 2) would go to 2 nodes; 2 replicas would stop for them."
    )
    assert [(row.name, row.stops, row.new) for row in found.rows] == [
        ("gpu-a", (), ("new 1 on GPUs 4–7",)),
        ("gpu-b", ("batch-0", "batch-1"), ("new 2 on GPUs 0–3",)),
    ]
    assert [(row.free_before, row.free_after) for row in found.rows] == [(4, 0), (0, 0)]
    assert "GPUs 0–3: held by no replica; new 2 would go here" in told(found.after)
    assert "GPUs 0–1: batch-0 of batch holds all of it, would stop" in told(found.before)
    assert "would stop" not in str(found.after)
    assert "new" not in " ".join(told(found.before))
    assert "gpu-c" not in f"{found.before}{found.after}"
    assert "<figcaption>now</figcaption>" in page
    assert "One way to place them" in page
    # The same in words, for whoever cannot see it.
    table = " ".join(strip_tags(page[page.index("desk-map-words") :]).split())
    assert "gpu-b batch-0, batch-1 new 2 on GPUs 0–3 0 → and then 0" in table


def test_names_lead_to_nodes_for_those_who_may_see_them(crowded: ServedModel, viewer: Client) -> None:
    link = f'href="{reverse("admin:sizing_node_change", args=[Node.objects.get(name="gpu-a").pk])}"'
    found, _ = asked(viewer, crowded)
    assert found is not None
    assert all(link in part for part in (found.before, found.after))
    modest = Client()
    modest.force_login(person("modest", "view_servedmodel"))
    found, page = asked(modest, crowded)
    assert found is not None
    assert link not in page


def test_there_is_no_map_where_nothing_is_to_be_had(crowded: ServedModel, viewer: Client) -> None:
    for variant in crowded.variants.all():
        builders.measurement(variant, BenchProfile.objects.get())
    found, page = asked(viewer, crowded, tokens_per_sec="0.1")
    assert found is None
    assert "map-heading" not in page
    Node.objects.update(schedulable=False)
    assert asked(viewer, crowded, tokens_per_sec="20000")[0] is None


def test_shared_gpus_are_filled_where_a_replica_runs_already(shared: ServedModel, viewer: Client) -> None:
    found, _ = asked(viewer, shared, tokens_per_sec="3000")
    assert found is not None
    assert [(row.name, row.new) for row in found.rows] == [("gpu-a", ("new 1 on GPU 1", "new 2 on GPU 1"))]
    assert told(found.after) == [
        "GPU 0: free",
        "GPU 1: small-0 of small holds 27,000 MiB; 559 MiB free; new 1, 2 would go here",
    ]


def test_many_replicas_on_one_node_are_counted(shared: ServedModel, viewer: Client) -> None:
    shared.variants.update(gpu_memory_mib=8_000)
    found, _ = asked(viewer, shared, tokens_per_sec="1000000")
    assert found is not None
    assert found.sentence == "39 of the 999 missing replicas (new 1 to 39) would go to 2 nodes."
    assert [(row.name, row.new) for row in found.rows] == [
        ("gpu-a", ("19 new replicas",)),
        ("gpu-b", ("20 new replicas",)),
    ]
    assert "GPU 0: held by no replica; 10 new per GPU would go here" in " ".join(told(found.after))


def test_a_map_of_many_nodes_shows_the_first_and_counts_the_rest(
    on_chat: BenchProfile, viewer: Client
) -> None:
    tiny = builders.model("tiny")
    builders.measurement(builders.variant(tiny, "tp1", 1), on_chat)
    for number in range(45):
        builders.node(f"gpu-{number:02}", 4)
    found, page = asked(viewer, tiny, tokens_per_sec="180000")
    assert found is not None
    assert [row.name for row in found.rows] == [f"gpu-{number:02}" for number in range(40)]
    assert found.more_nodes == 5
    assert "and 5 more nodes" in page
    for number in range(45, 80):
        builders.node(f"gpu-{number:02}", 16)
    Node.objects.filter(name__lt="gpu-45").update(ready=False)
    found, page = asked(viewer, tiny, tokens_per_sec="560000")
    assert found is not None
    assert (len(found.rows), found.more_nodes) == (10, 25)
