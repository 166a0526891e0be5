"""Every form in which a list of a cluster comes."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from typing import Any, BinaryIO

import pytest
import yaml

from sizing.inventory.kubernetes.facts import Listing
from sizing.inventory.kubernetes.reading import json_walking, read_listing, source
from tests.kubernetes.made import Object, container, node, pod

OBJECTS = [node("n1"), node("n2"), pod("p1"), pod("p2"), {"kind": "ConfigMap", "metadata": {"name": "m"}}]


def a_list(*items: Object, **more: Any) -> Object:
    return {
        "apiVersion": "v1",
        "items": list(items),
        "kind": "List",
        "metadata": {"resourceVersion": ""},
    } | more


def without_kind(item: Object) -> Object:
    return {key: value for key, value in item.items() if key not in ("kind", "apiVersion")}


def of_one_kind(kind: str, *items: Object, **more: Any) -> Object:
    bare = [without_kind(item) for item in items]
    return {"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": bare} | more


def kind_last(listed: Object) -> Object:
    return {"items": listed["items"], "kind": listed["kind"]}


def as_json(value: Any, **how: Any) -> bytes:
    return json.dumps(value, **how).encode()


def as_yaml(*values: Any) -> bytes:
    return yaml.safe_dump_all(values, explicit_start=True, default_flow_style=False).encode()


WHOLE = a_list(*OBJECTS)
NODES, PODS, OTHER = OBJECTS[:2], OBJECTS[2:4], OBJECTS[4:]
INDENTED = json.dumps(WHOLE, indent=4)

FORMS: dict[str, bytes] = {
    "a list": as_json(WHOLE),
    "indented": INDENTED.encode(),
    "with CRLF and a byte order mark": b"\xef\xbb\xbf" + INDENTED.replace("\n", "\r\n").encode(),
    "UTF-16 as PowerShell writes it": INDENTED.replace("\n", "\r\n").encode("utf-16"),
    "UTF-16 big endian": ("\ufeff" + INDENTED).encode("utf-16-be"),
    "UTF-16 little endian without a mark": INDENTED.encode("utf-16-le"),
    "UTF-16 big endian without a mark": INDENTED.encode("utf-16-be"),
    "packed": gzip.compress(as_json(WHOLE)),
    "packed in two parts": gzip.compress(as_json(WHOLE)[:99]) + gzip.compress(as_json(WHOLE)[99:]),
    "lists behind each other": as_json(a_list(*NODES)) + b"\n" + as_json(a_list(*PODS, *OTHER)),
    "lists without a space between": as_json(a_list(*NODES)) + as_json(a_list(*PODS, *OTHER)),
    "JSON documents with --- between": b"\n---\n".join(map(as_json, OBJECTS)) + b"\n---\n",
    "lists with --- between": b"\r\n--- \r\n---\r\n".join(
        (
            as_json(of_one_kind("NodeList", *NODES)),
            as_json(of_one_kind("PodList", *PODS)),
            *map(as_json, OTHER),
        )
    ),
    "one object a line": b"\r\n".join(map(as_json, OBJECTS)) + b"\r\n",
    "objects behind each other, indented": b"".join(as_json(item, indent=1) for item in OBJECTS),
    "an array": as_json(OBJECTS),
    "lists of one kind": as_json(of_one_kind("NodeList", *NODES))
    + as_json(of_one_kind("PodList", *PODS))
    + as_json(OTHER[0]),
    "lists of one kind whose kind stands last": as_json(kind_last(of_one_kind("NodeList", *NODES)))
    + as_json(kind_last(of_one_kind("PodList", *PODS)))
    + as_json(OTHER[0]),
    "an array of lists": as_json([of_one_kind("NodeList", *NODES), of_one_kind("PodList", *PODS), *OTHER]),
    "a list of lists": as_json(
        a_list(of_one_kind("NodeList", *NODES), a_list(of_one_kind("PodList", *PODS), *OTHER))
    ),
    "a list without a kind": as_json({"items": OBJECTS}),
    "YAML": as_yaml(WHOLE),
    "YAML with CRLF and a byte order mark": b"\xef\xbb\xbf" + as_yaml(WHOLE).replace(b"\n", b"\r\n"),
    "YAML in UTF-16": as_yaml(WHOLE).decode().encode("utf-16"),
    "YAML of several documents": as_yaml(*OBJECTS),
    "YAML documents of lists": as_yaml(of_one_kind("NodeList", *NODES), None, a_list(*PODS), OTHER),
    "a YAML array": as_yaml(OBJECTS),
    "packed YAML": gzip.compress(as_yaml(WHOLE)),
    "JSON below white space": b"\n\n  " + as_json(WHOLE) + b"\n\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_list(form: str) -> None:
    assert read_listing(FORMS[form]) == read_listing(FORMS["a list"])


def test_the_list_is_what_stands_in_it() -> None:
    listing = read_listing(FORMS["a list"])
    assert list(listing.nodes) == ["n1", "n2"]
    assert [found.key for found in listing.pods.values()] == ["llm/p1", "llm/p2"]
    assert listing.other == {"ConfigMap": 1}
    assert listing.kinds == {"Node", "Pod", "ConfigMap"}
    assert (listing.skipped, listing.warnings, listing.duplicates, listing.incomplete) == ([], [], 0, "")


@pytest.mark.parametrize("piece", [4, 5, 7, 64])
@pytest.mark.parametrize("form", FORMS)
def test_it_does_not_matter_where_the_pieces_end(
    form: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = read_listing(FORMS["a list"])
    monkeypatch.setattr(source, "PIECE", piece)
    assert read_listing(FORMS[form]) == whole


def test_a_number_that_is_cut_by_the_end_of_a_piece_is_one_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for piece in (4, 5, 6, 7):
        monkeypatch.setattr(source, "PIECE", piece)
        listing = read_listing(b'{"kind": "ConfigMap"} [1234567890, 9876543210]')
        assert [skipped.reason for skipped in listing.skipped] == ["it is 1234567890", "it is 9876543210"]


class Pipe(io.RawIOBase):
    """A stream that cannot be sought, and that gives little at a time."""

    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)

    def read(self, size: int = -1) -> bytes:
        return self._content.read(min(size, 11) if size > 0 else 11)

    def tell(self) -> int:
        raise OSError("Illegal seek")


@pytest.mark.parametrize("form", ["a list", "packed", "YAML", "UTF-16 as PowerShell writes it"])
@pytest.mark.parametrize("opened", [io.BytesIO, Pipe])
def test_it_is_read_from_a_stream_too(form: str, opened: Callable[[bytes], BinaryIO]) -> None:
    assert read_listing(opened(FORMS[form])) == read_listing(FORMS["a list"])


def test_the_progress_goes_from_0_to_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PIECE", 400)
    for form in ("a list", "packed", "YAML"):
        told: list[float] = []
        read_listing(FORMS[form], told.append)
        assert told == sorted(told)
        assert told[-1] == 1
        if form != "packed":  # so short a file is unpacked at once
            assert len(told) > 3
            assert 0 < told[0] < 1


def test_what_the_progress_raises_ends_the_reading() -> None:
    def stop(share: float) -> None:
        raise KeyboardInterrupt

    for form in ("a list", "YAML", "packed"):
        with pytest.raises(KeyboardInterrupt):
            read_listing(FORMS[form], stop)


def test_an_object_that_is_larger_than_any_is_read_as_the_list_that_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = read_listing(FORMS["a list"])
    monkeypatch.setattr(source, "PIECE", 64)
    monkeypatch.setattr(json_walking, "LARGEST_OBJECT", 600)
    assert read_listing(FORMS["an array of lists"]) == whole
    assert read_listing(FORMS["a list of lists"]) == whole


@pytest.mark.parametrize("item", [node("n1"), pod("p1")], ids=["node", "pod"])
def test_a_single_object_is_a_list_of_one(item: Object) -> None:
    for form in (as_json(item), as_yaml(item)):
        listing = read_listing(form)
        assert len(listing.nodes) + len(listing.pods) == 1


@pytest.mark.parametrize(
    "empty",
    [
        b'{"apiVersion": "v1", "kind": "List", "items": []}',
        b'{"apiVersion": "v1", "kind": "NodeList", "items": null}',
        b'{"apiVersion": "v1", "kind": "NodeList"}',
        b"[]",
        b"kind: List\nitems: []\n",
        b"kind: NodeList\nitems:\n",
    ],
)
def test_a_list_of_nothing_is_taken_with_a_warning(empty: bytes) -> None:
    listing = read_listing(empty)
    assert (listing.nodes, listing.pods, listing.skipped) == ({}, {}, [])
    assert listing.warnings == ["there are no nodes and no pods in the list"]


def test_a_list_of_one_kind_tells_that_it_was_listed_also_where_there_is_none() -> None:
    assert read_listing(as_json(of_one_kind("PodList"))).kinds == {"Pod"}
    assert read_listing(b'{"kind": "NodeList", "items": null}').kinds == {"Node"}


def test_a_kind_that_only_ends_like_a_list_is_an_object() -> None:
    listing = read_listing(b'{"kind": "AllowList", "metadata": {"name": "a"}, "spec": {"items": []}}')
    assert listing.other == {"AllowList": 1}


@pytest.mark.parametrize(
    ("metadata", "note"),
    [
        (
            {"continue": "eyJ2", "remainingItemCount": 412},
            "metadata.continue is set, 412 more items are missing",
        ),
        ({"continue": "eyJ2", "remainingItemCount": 1}, "metadata.continue is set, 1 more item is missing"),
        ({"continue": "eyJ2"}, "metadata.continue is set, more items are missing"),
        ({"continue": "eyJ2", "remainingItemCount": "x"}, "metadata.continue is set, more items are missing"),
    ],
)
def test_a_list_that_goes_on_is_incomplete(metadata: Object, note: str) -> None:
    for form in (
        as_json(a_list(*OBJECTS, metadata=metadata)),
        as_yaml(a_list(*OBJECTS, metadata=metadata)),
        as_json(a_list(*NODES)) + as_json(of_one_kind("PodList", *PODS, metadata=metadata)),
        as_json([*NODES, of_one_kind("PodList", *PODS, metadata=metadata)]),
    ):
        listing = read_listing(form)
        assert listing.incomplete == note
        assert listing.warnings == [f"{note}, so the figures are not complete"]


def test_every_list_that_goes_on_is_told() -> None:
    nodes = of_one_kind("NodeList", *NODES, metadata={"continue": "a", "remainingItemCount": 3})
    pods = of_one_kind("PodList", *PODS, metadata={"continue": "b"})
    assert read_listing(as_json([nodes, pods])).incomplete == (
        "metadata.continue is set, 3 more items are missing; metadata.continue is set, more items are missing"
    )


@pytest.mark.parametrize("metadata", [None, "x", 3, [], {"continue": ""}, {"continue": None}])
def test_a_list_that_is_whole_is_not_incomplete(metadata: Any) -> None:
    assert read_listing(as_json(a_list(*OBJECTS, metadata=metadata))).incomplete == ""


def at_version(version: Any, gpus: int) -> Object:
    return pod("p1", spec={"containers": [container(gpus)], "nodeName": "n1"}, resourceVersion=version)


@pytest.mark.parametrize(
    ("first", "second", "gpus"),
    [("10", "9", 1), ("9", "10", 2), ("10", "10", 2), ("10", None, 2), ("x", "9", 2)],
)
def test_of_one_object_twice_the_newer_version_counts(first: Any, second: Any, gpus: int) -> None:
    listing = read_listing(as_json(a_list(node("n1"), at_version(first, 1), at_version(second, 2))))
    assert [found.requests for found in listing.pods.values()] == [{"nvidia.com/gpu": gpus}]
    assert listing.duplicates == 1


def test_items_that_are_no_objects_are_skipped_with_the_reason() -> None:
    listing = read_listing(as_json(a_list(None, 3, "x", [], {}, *OBJECTS)))  # type: ignore[arg-type]
    assert [(skipped.kind, skipped.reason) for skipped in listing.skipped] == [
        ("object", "it is null"),
        ("object", "it is 3"),
        ("object", 'it is the text "x"'),
        ("object", "it is a list"),
        ("object", "it has no kind"),
    ]
    assert len(listing.nodes) == 2


def test_numbers_and_texts_of_yaml_are_as_kubectl_means_them() -> None:
    document = b"""
kind: List
items:
- kind: Node
  metadata:
    name: '8'
    labels: {nvidia.com/gpu.count: 8, gpu: 'on', shared: true, version: 1.50, empty: }
  status:
    capacity: {nvidia.com/gpu: '8', cpu: 127.5, memory: 1.9Ti, pods: 110}
"""
    (found,) = read_listing(document).nodes.values()
    assert found.name == "8"
    assert found.labels == {
        "nvidia.com/gpu.count": "8",
        "gpu": "on",
        "shared": "true",
        "version": "1.50",
        "empty": "",
    }
    assert found.capacity == {"nvidia.com/gpu": 8, "cpu": 127_500, "memory": 2_089_072_092_775, "pods": 110}


def test_the_facts_are_the_same_in_other_alphabets() -> None:
    item = node("n1")
    item["metadata"]["labels"] = {"team": "Köln", "note": "日本 🚀"}
    written = json.dumps(a_list(item), ensure_ascii=False)
    for form in (written.encode(), written.encode("utf-16"), as_json(a_list(item))):
        assert read_listing(form).nodes["n1"].labels == {"team": "Köln", "note": "日本 🚀"}


def test_an_empty_listing_is_not_shared() -> None:
    assert read_listing(b"[]") is not read_listing(b"[]")
    assert isinstance(read_listing(b"[]"), Listing)
