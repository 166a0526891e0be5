"""Nodes drawn as rows of GPU cells."""

from __future__ import annotations

import re
from decimal import Decimal
from xml.etree import ElementTree

from sizing.admin.picture import Cell, Kind, Row, draw, hues, legend, model_key, row_of
from sizing.admin.picture.lettering import short_names
from sizing.domain.fleet import Fleet
from sizing.domain.picture import NodePicture, node_picture
from sizing.domain.specs import GpuSpec, ModelSpec, NodeSpec, ReplicaSpec, VariantSpec

H100 = "NVIDIA-H100-80GB-HBM3"
SVG = "{http://www.w3.org/2000/svg}"
LLAMA = ModelSpec(
    "meta-llama/Llama-70B",
    variants=(VariantSpec("tp2", gpus=2), VariantSpec("half", gpu_memory_fraction=Decimal("0.5"))),
)
HUES = {LLAMA.name: 3}


def replica(name: str, variant: str, *indexes: int, state: str = "ready") -> ReplicaSpec:
    return ReplicaSpec(name, LLAMA.name, variant, state, placement=(("a1", indexes),))


EIGHT = tuple(GpuSpec(index, H100, 80000) for index in range(8))


def picture(*replicas: ReplicaSpec, gpus: tuple[GpuSpec, ...] = EIGHT, closed: bool = False) -> NodePicture:
    node = NodeSpec("a1", gpus, schedulable=not closed, stale=closed)
    return node_picture(Fleet.build([node], [LLAMA], replicas), 0)


def cells(row: Row) -> list[tuple[str, int]]:
    return [(cell.kind.value, cell.gpus) for cell in row.cells]


def drawn(*rows: Row) -> ElementTree.Element:
    """The image as a browser would read it: well-formed, or this fails."""
    image = draw(rows, name="fleet", title="Fleet", about="all of it")
    return ElementTree.fromstring(image.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


def texts(image: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()) for text in image.iter(f"{SVG}text")]


def test_what_a_replica_holds_side_by_side_is_one_cell_and_free_gpus_stay_apart() -> None:
    row = row_of(picture(replica("l-0", "tp2", 0, 1), replica("l-1", "tp2", 2, 3)), url="/nodes/1", hues=HUES)
    assert cells(row) == [("held", 2), ("held", 2), ("free", 1), ("free", 1), ("free", 1), ("free", 1)]
    first = row.cells[0]
    assert (first.says, first.label, first.hue) == (
        "GPUs 0–1: l-0 of meta-llama/Llama-70B holds all of it",
        "Llama-70B",
        3,
    )
    assert (row.name, row.url, row.note, row.closed) == ("a1", "/nodes/1", "4 free", "")


def test_a_gpu_that_is_partly_held_shows_who_has_how_much() -> None:
    row = row_of(
        picture(
            replica("l-0", "half", 0), replica("l-1", "half", 0), replica("l-2", "half", 1, state="failed")
        ),
        url="",
        hues=HUES,
    )
    assert cells(row)[:2] == [("shared", 1), ("shared", 1)]
    assert [part.share for part in row.cells[0].parts] == [0.5, 0.5]
    assert row.cells[1].says == (
        "GPU 1: l-2 of meta-llama/Llama-70B holds 40,000 MiB, failed; 40,000 MiB free"
    )


def test_outside_use_and_unhealthy_gpus_have_kinds_of_their_own() -> None:
    gpus = (
        GpuSpec(0, H100, 80000, used_outside_mib=9000),
        GpuSpec(1, H100, 80000, used_outside_mib=500),
        GpuSpec(2, H100, 80000, healthy=False),
        GpuSpec(3, "NVIDIA-L40S", 46000, healthy=False),
        GpuSpec(4, H100, None),
    )
    row = row_of(picture(replica("l-0", "half", 3), gpus=gpus), url="", hues=HUES)
    assert cells(row) == [("outside", 1), ("free", 1), ("unhealthy", 1), ("shared", 1), ("free", 1)]
    assert [cell.unhealthy for cell in row.cells] == [False, False, True, True, False]
    assert row.cells[0].says == (f"GPU 0 ({H100}): held by no replica; 9,000 MiB used outside of replicas")
    assert row.note == "2 free"
    # A cross on each unhealthy one, also on the one that is held.
    assert len([p for p in drawn(row).iter(f"{SVG}path") if p.get("class") == "desk-pic-cross"]) == 2


def test_a_cordoned_node_is_told_apart_by_its_outline_and_its_word() -> None:
    closed = row_of(picture(closed=True), url="", hues={})
    assert (closed.note, closed.closed) == ("cordoned, stale", "cordoned, stale")
    assert "cordoned, stale" in texts(drawn(closed))
    fences = [r for r in drawn(closed).iter(f"{SVG}rect") if r.get("class") == "desk-pic-fence"]
    assert len(fences) == 1
    assert "desk-pic-fence" not in draw([row_of(picture(), url="", hues={})], name="f", title="", about="")


def test_new_and_stopping_replicas_are_marked_and_named() -> None:
    before = row_of(
        picture(replica("l-0", "tp2", 0, 1), replica("l-1", "half", 2), replica("l-2", "half", 2)),
        url="",
        hues=HUES,
        stops={"l-0", "l-2"},
        new={4: "chat +1", 5: "chat +1", 6: "chat +2"},
    )
    assert cells(before) == [("stops", 2), ("stops", 1), ("free", 1), ("new", 2), ("new", 1), ("free", 1)]
    assert before.cells[0].says.endswith("holds all of it, would stop")
    assert [part.stops for part in before.cells[1].parts] == [False, True]
    assert before.cells[3].says == "GPUs 4–5: free; chat +1 would go here"
    image = drawn(before)
    through = [p for p in image.iter(f"{SVG}path") if p.get("class") == "desk-pic-through"]
    assert len(through) == 2
    hatched = [r for r in image.iter(f"{SVG}rect") if r.get("fill") == "url(#fleet-stops)"]
    # All of what one holder had, and of the shared GPU the upper half.
    assert [(r.get("y"), r.get("height")) for r in hatched] == [("0", "18"), ("0", "9")]
    (label,) = [g.get("aria-label") for g in image.iter(f"{SVG}g") if g.get("role") == "img"]
    assert label == "3 stops, 2 free, 3 new"


def test_a_row_leads_to_its_node_and_says_names_in_full() -> None:
    name = "ip-10-0-12-34.eu-central-1.compute.internal"
    rows = [
        Row(name, "/n/1?x=1&y=2", "", (Cell(Kind.FREE, 'a "quoted" <story>'),), "1 free"),
        Row("gke-pool-1a2b3c4d5e6f-x9z1", "", "", (), "no GPUs"),
    ]
    image = drawn(*rows)
    (link,) = image.iter(f"{SVG}a")
    assert (link.get("href"), link.get("aria-label")) == ("/n/1?x=1&y=2", name)
    assert texts(image) == [
        f"{name}ip-10-0-12-34",
        "1 free",
        "gke-pool-1a2b3c4d5e6f-x9z1gke-poo…e6f-x9z1",
        "no GPUs",
    ]
    assert 'a "quoted" <story>' in [t.text for t in image.iter(f"{SVG}title")]


def test_a_node_without_gpus_is_a_row_too() -> None:
    row = row_of(picture(gpus=()), url="", hues={})
    assert (row.cells, row.note) == ((), "no GPUs")
    assert texts(drawn(row)) == ["a1", "no GPUs"]


def test_short_names_stay_apart() -> None:
    assert short_names(["a.eu", "b.eu"]) == ["a", "b"]
    assert short_names(["a.eu", "a.us"]) == ["a.eu", "a.us"]
    assert short_names(["gke-pool-1a2b3c4d5e6f-x9z1"]) == ["gke-poo…e6f-x9z1"]


def test_many_slices_go_on_in_lines_below() -> None:
    slices = Row("mig-1", "", "", tuple(Cell(Kind.FREE, "") for _ in range(56)), "56 free")
    image = drawn(slices, Row("a1", "", "", (Cell(Kind.HELD, "", gpus=20),), "full"))
    assert image.get("height") == str((4 + 2) * 22)
    held = [r for r in image.iter(f"{SVG}rect") if r.get("class") == "desk-pic-held desk-pic-h0"]
    assert [(r.get("y"), r.get("width")) for r in held] == [("0", "158"), ("22", "38")]


def test_no_color_or_style_is_written_into_the_image() -> None:
    rows = [
        row_of(picture(replica("l-0", "half", 0)), url="", hues=HUES, new={1: "n"}, stops={"l-0"}),
    ]
    image = draw(rows, name="p", title="P", about="p") + legend(Kind) + model_key(4)
    assert not re.search(r"style=|#[0-9a-f]{3}|<script|<style", image)
    assert image.count('id="p-') == 4


def test_a_legend_has_what_is_asked_for_once_in_one_order() -> None:
    found = legend([Kind.UNHEALTHY, Kind.FREE, Kind.FREE])
    words = [re.sub("<[^>]*>", "", item).strip() for item in re.findall("<li>(.*?)</li>", found)]
    assert words == ["free", "unhealthy"]


def test_a_model_has_its_color_by_its_name_whatever_others_there_are() -> None:
    models = [f"m{number}" for number in range(9)]
    found = hues(models)
    assert set(found) == set(models)
    assert set(found.values()) <= set(range(8))
    assert all(hues([name]) == {name: found[name]} for name in models)
