"""What is no list of a cluster is refused with one line that says what it is and where."""

from __future__ import annotations

import gzip
import io
import json

import pytest

from sizing.inventory.kubernetes.reading import json_walking, read_listing, source, taking, yaml_walking
from sizing.inventory.yaml_reading import UnreadableError
from tests.kubernetes.made import WHOLE, problem

ASK = "use `kubectl get nodes,pods -A -o json`"


@pytest.mark.parametrize(
    "document", [b"", b"  \r\n\t", b"\xef\xbb\xbf", "\ufeff".encode("utf-16-le"), gzip.compress(b"", mtime=0)]
)
def test_an_empty_file(document: bytes) -> None:
    assert problem(document) == "the file is empty"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            b"Name:               h100-a\nRoles:              <none>\n",
            f"this looks like `kubectl describe`; {ASK}",
        ),
        (
            b"NAME     STATUS   ROLES    AGE\nh100-a   Ready    <none>   3d\n",
            f"this looks like the table of `kubectl get`; {ASK}",
        ),
        (
            b"NAMESPACE   NAME    READY\nllm         p1      1/1\n",
            f"this looks like the table of `kubectl get`; {ASK}",
        ),
        (b"<!DOCTYPE html><html>", f"this is HTML or XML, as of a page to sign in; {ASK}"),
        (b"PK\x03\x04" + bytes(60), f"this is no text; {ASK}"),
        (b"hello", f"line 1: this is neither a Kubernetes object nor a list of them; {ASK}"),
        (
            b"kind: Node\nmetadata: {name: n}\n---\nhello\n",
            f"line 4: this is neither a Kubernetes object nor a list of them; {ASK}",
        ),
        (b'{"version": 1, "nodes": []}', "this is an inventory file; `manage.py load_inventory` reads it"),
        (b"version: 1\nmodels: []\n", "this is an inventory file; `manage.py load_inventory` reads it"),
        (
            b"apiVersion: v1\nkind: Config\nclusters: []\nusers: []\n",
            f"this is a kubeconfig, not a list of objects; {ASK}",
        ),
        (
            b'{"type": "ADDED", "object": {"kind": "Node"}}',
            f"these are the events of a watch, not a list; {ASK}",
        ),
        (b'{"a": 1}', f"this is no Kubernetes object: it has no kind; {ASK}"),
        (b'[{"a": 1}, 2]', f"these are no Kubernetes objects: none has a kind; {ASK}"),
        (b"---\n---\n", f"there is no Kubernetes object in the file; {ASK}"),
        (b'{"kind": "NodeList", "items": {}}', "items must be a list of objects, not a mapping"),
        (b"kind: List\nitems: x\n", 'items must be a list of objects, not the text "x"'),
    ],
)
def test_what_it_is_instead(document: bytes, said: str) -> None:
    assert problem(document) == said


@pytest.mark.parametrize(
    "error",
    [
        'Error from server (Forbidden): nodes is forbidden: User "x"',
        "The connection to the server 192.0.2.1:6443 was refused",
        "No resources found in default namespace.",
        'error: the server doesn\'t have a resource type "podz"',
    ],
)
def test_what_kubectl_says_instead_is_shown(error: str) -> None:
    assert problem(error.encode() + b"\n") == f"this is what kubectl says instead of a list: {error}"


STATUS = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": 'nodes is forbidden: User "viewer" cannot list resource "nodes"\n  at the cluster scope',
    "reason": "Forbidden",
    "code": 403,
}


def test_a_status_is_shown_with_its_code_and_message() -> None:
    said = (
        "this is a Kubernetes Status object, not a list: 403 Forbidden: "
        'nodes is forbidden: User "viewer" cannot list resource "nodes" at the cluster scope'
    )
    as_json = json.dumps(STATUS).encode()
    assert problem(as_json) == said
    assert problem(WHOLE + as_json) == said
    assert problem(b'{"kind": "List", "items": [' + as_json + b"]}") == said
    assert (
        problem(b'{"kind": "Status"}') == "this is a Kubernetes Status object, not a list: without a message"
    )


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            b"kind: [List\n",
            "line 2, column 1: while parsing a flow sequence did not find expected ',' or ']'",
        ),
        (
            b"kind: List\nitems:\n- kind: Node\n  metadata: {name: 'a\n",
            "line 5, column 1: while scanning a quoted scalar found unexpected end of stream",
        ),
        (b"kind: &a List\nitems: []\n", "line 1, column 7: anchors and aliases are not read; write it out"),
        (b"kind: List\nkind: List\n", 'line 2, column 1: duplicate key "kind"'),
        (b"kind: List\nitems:\n- kind: Node\n  kind: Node\n", 'line 4, column 3: duplicate key "kind"'),
        (
            b"kind: List\nitems: !!python/object:os.system x\n",
            "line 2, column 8: tags such as tag:yaml.org,2002:python/object:os.system are not read",
        ),
        (b"- " * 500 + b"a", "line 1, column 203: nested more than 100 levels deep"),
    ],
)
def test_yaml_that_is_none_is_told_with_the_line(document: bytes, said: str) -> None:
    assert problem(document) == said


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (b'{"kind":\n"N\xf6de"}', "line 2: this is not UTF-8"),
        (b"kind: Node\nmetadata: \xff\n", "line 2: this is not UTF-8"),
        (WHOLE.decode().encode("utf-16")[:-1], f"line {WHOLE.count(10) + 1}: this is not UTF-16"),
        (WHOLE.decode().encode("utf-32"), "this is UTF-32; only UTF-8 and UTF-16 are read"),
    ],
)
def test_text_that_is_none_is_told(document: bytes, said: str) -> None:
    assert problem(document) == said


def test_packed_data_that_is_broken_is_told() -> None:
    packed = gzip.compress(WHOLE)
    assert problem(packed[:-9]) == "the gzip data ends too early; the file was cut off"
    assert problem(packed[:12] + b"x" * 40) == "the gzip data is broken"
    assert problem(packed[:-8] + b"12345678") == "the gzip data is broken"
    assert problem(packed + b"junk") == "the gzip data is broken"


def test_packed_data_is_unpacked_only_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LARGEST", 3 * 1024**2)
    bomb = gzip.compress(b'{"kind": "List", "items": [' + b" " * (8 * 1024**2))
    stream = io.BytesIO(bomb)
    with pytest.raises(UnreadableError, match="the list is larger than"):
        read_listing(stream)


def test_one_object_is_read_only_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PIECE", 100)
    monkeypatch.setattr(json_walking, "LARGEST_OBJECT", 1000)
    for value in (b'"' + b"x" * 5000, b"[" + b"1," * 5000, b'{"a": [' + b"1," * 5000):
        document = b'{"kind": "List", "items": [' + value
        assert problem(document).startswith("not valid JSON: line 1, column ")
    inventory = json.dumps(
        {"version": 1, "nodes": [{"name": f"n{number}"} for number in range(500)]}
    ).encode()
    assert problem(inventory) == "this is an inventory file; `manage.py load_inventory` reads it"


def test_only_so_many_objects_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking, "MOST_OBJECTS", 10)
    for items in (b"{}," * 50, b"1," * 50, b'{"kind": "ConfigMap"},' * 50):
        assert problem(b'{"kind": "List", "items": [' + items) == "the list has more than 10 objects"
        assert problem(b'{"items": [' + items) == "the list has more than 10 objects"


def test_only_so_much_yaml_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_walking, "LARGEST", 1000)
    assert problem(b"kind: List\nitems:\n" + b"- kind: Node\n" * 100).startswith("the YAML is larger than")


@pytest.mark.parametrize(
    "junk",
    [
        bytes(range(256)),
        b"\x00" * 50,
        b"\x80\x81",
        b"\x1f\x8b",
        b"{\x00",
        b"\x00{",
        b"%!PS",
        b"&",
        b"- - :",
        b"? ",
        b"!",
        b"\t",
    ],
)
def test_junk_is_one_clear_line(junk: bytes) -> None:
    assert problem(junk)
