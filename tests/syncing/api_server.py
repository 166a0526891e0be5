"""A small Kubernetes API server: a store with versions, pages, watches, bookmarks, and faults on demand."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

GROUPS = {
    "policy": ["v1"],
    "scheduling.k8s.io": ["v1"],
    "apps": ["v1"],
    "batch": ["v1"],
    "resource.k8s.io": ["v1beta1", "v1"],
}
BOOKMARK_EVERY_S = 0.05
CERTIFICATE = Path(__file__).with_name("certificate.pem")
"""For 127.0.0.1, with its key; it protects nothing but these tests."""

Fault = Callable[["Handler"], None]


@dataclass
class Request:
    verb: str  # get, list or watch
    plural: str
    query: dict[str, str]
    token: str
    accept: str


@dataclass
class ApiServer:
    """What the server has, what it was asked, and how it is to fail."""

    groups: dict[str, list[str]] = field(default_factory=lambda: dict(GROUPS))
    token: str = ""  # the one that is taken; empty: any
    page: int = 500  # it never gives more at once
    bookmarks: bool = True
    address: str = ""
    requests: list[Request] = field(default_factory=list)
    version: int = 100
    oldest: int = 0  # a watch from before it is answered with 410

    def __post_init__(self) -> None:
        self.changed = threading.Condition()
        self.closing = threading.Event()
        self.objects: dict[str, dict[str, dict[str, Any]]] = {}
        self.events: list[tuple[int, str, str, dict[str, Any]]] = []
        self.continues: dict[str, tuple[list[dict[str, Any]], int]] = {}
        self.faults: dict[tuple[str, str], deque[Fault]] = {}
        self.always: dict[tuple[str, str], Fault] = {}
        self.ended_watches: Counter[str] = Counter()

    def put(self, plural: str, item: dict[str, Any]) -> None:
        """Add an object, or change the one of that name."""
        with self.changed:
            self.version += 1
            metadata = item["metadata"]
            key = f"{metadata.get('namespace', '')}/{metadata['name']}"
            stored = {**item, "metadata": {"uid": key, **metadata, "resourceVersion": str(self.version)}}
            known = self.objects.setdefault(plural, {})
            self.events.append((self.version, plural, "MODIFIED" if key in known else "ADDED", stored))
            known[key] = stored
            self.changed.notify_all()

    def delete(self, plural: str, name: str, namespace: str = "") -> None:
        with self.changed:
            self.version += 1
            gone = self.objects[plural].pop(f"{namespace}/{name}")
            self.events.append((self.version, plural, "DELETED", gone))
            self.changed.notify_all()

    def forget(self) -> None:
        """As a compaction does: what was before is told to nobody any more."""
        with self.changed:
            self.version += 1
            self.oldest = self.version
            self.changed.notify_all()

    def end_watches(self, plural: str) -> None:
        """End the watches of a kind in good order, as their time would."""
        with self.changed:
            self.ended_watches[plural] += 1
            self.changed.notify_all()

    def once(self, verb: str, plural: str, *faults: Fault) -> None:
        """Fail the next such requests so, one after the other."""
        self.faults.setdefault((verb, plural), deque()).extend(faults)

    def fault_for(self, verb: str, plural: str) -> Fault | None:
        waiting = self.faults.get((verb, plural))
        return waiting.popleft() if waiting else self.always.get((verb, plural))

    def asked(self, verb: str, plural: str) -> list[Request]:
        return [request for request in self.requests if (request.verb, request.plural) == (verb, plural)]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: ApiServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        plural = parts.path.rpartition("/")[2]
        verb = "get" if parts.path == "/apis" else "watch" if "watch" in query else "list"
        token = self.headers.get("authorization", "").partition(" ")[2]
        request = Request(verb, plural, query, token, self.headers["Accept"])
        self.api.requests.append(request)
        try:
            if self.api.token and token != self.api.token:
                self.status(401, "Unauthorized")
            elif fault := self.api.fault_for(verb, plural):
                fault(self)
            elif verb == "get":
                self.groups()
            elif verb == "list":
                self.list(request)
            else:
                self.watch(request)
        except OSError:  # the client is gone
            self.close_connection = True

    def groups(self) -> None:
        groups = [
            {"name": name, "versions": [{"version": version} for version in versions]}
            for name, versions in self.api.groups.items()
        ]
        self.json(200, {"kind": "APIGroupList", "groups": groups})

    def list(self, request: Request) -> None:
        with self.api.changed:
            given = request.query.get("continue")
            if given is None:
                items, version, offset = (
                    [*self.api.objects.get(request.plural, {}).values()],
                    self.api.version,
                    0,
                )
            elif given in self.api.continues:
                items, version = self.api.continues[given]
                offset = int(given.rpartition("-")[2])
            else:
                return self.status(410, "The provided continue parameter is too old", "Expired")
            end = offset + min(int(request.query.get("limit", "500")), self.api.page)
            metadata: dict[str, Any] = {"resourceVersion": str(version)}
            if end < len(items):
                metadata["continue"] = f"{request.plural}-{version}-{end}"
                self.api.continues[metadata["continue"]] = (items, version)
        self.json(200, {"kind": "List", "metadata": metadata, "items": items[offset:end] or None})

    def watch(self, request: Request) -> None:
        self.begin_stream()
        position = int(request.query["resourceVersion"])
        if position < self.api.oldest:
            error = {
                "kind": "Status",
                "code": 410,
                "reason": "Expired",
                "message": "too old resource version",
            }
            self.line({"type": "ERROR", "object": error})
            return self.end_stream()
        until = time.monotonic() + float(request.query["timeoutSeconds"])
        ended = self.api.ended_watches[request.plural]
        while time.monotonic() < until and not self.api.closing.is_set():
            if self.api.ended_watches[request.plural] != ended:
                break
            with self.api.changed:
                told = [
                    event for event in self.api.events if event[0] > position and event[1] == request.plural
                ]
                position = self.api.version
                if not told:
                    self.api.changed.wait(BOOKMARK_EVERY_S)
            for _, _, what, item in told:
                self.line({"type": what, "object": item})
            if not told and self.api.bookmarks:
                bookmark = {"kind": "Bookmark", "metadata": {"resourceVersion": str(position)}}
                self.line({"type": "BOOKMARK", "object": bookmark})
        self.end_stream()

    def json(self, code: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def status(self, code: int, message: str, reason: str = "") -> None:
        self.json(code, {"kind": "Status", "code": code, "reason": reason, "message": message})

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def line(self, event: dict[str, Any]) -> None:
        self.chunk(json.dumps(event).encode() + b"\n")

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def end_stream(self) -> None:
        self.wfile.write(b"0\r\n\r\n")


def answers(code: int, message: str = "it is so", reason: str = "") -> Fault:
    """A status instead of what was asked for."""
    return lambda handler: handler.status(code, message, reason)


def sends(data: bytes) -> Fault:
    """A stream of these bytes, which then ends in good order."""

    def send(handler: Handler) -> None:
        handler.begin_stream()
        handler.chunk(data)
        handler.end_stream()

    return send


def cuts(data: bytes) -> Fault:
    """A stream of these bytes whose connection is then lost."""

    def send(handler: Handler) -> None:
        handler.begin_stream()
        handler.chunk(data)
        handler.close_connection = True

    return send


def is_silent(handler: Handler) -> None:
    """A stream that begins and says nothing."""
    handler.begin_stream()
    handler.wfile.flush()
    handler.api.closing.wait(30)
    handler.close_connection = True


def closes_at_its_end(handler: Handler) -> None:
    """A stream as of a proxy that knows no chunks: it begins, says nothing, and is closed after a while."""
    handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n")
    handler.api.closing.wait(30)
    handler.close_connection = True


def repeats_the_token(handler: Handler) -> None:
    """An error as of a proxy that tells all it was sent, whole and in pieces."""
    sent = handler.headers["authorization"]
    words = f"{'x ' * 110}was sent {sent} by token={sent.partition(' ')[2]} and Basic dTpwYXNz"
    handler.send_response(500, f"Bad {sent}")
    data = json.dumps({"kind": "Status", "code": 500, "message": words}).encode()
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def hangs(handler: Handler) -> None:
    """No answer at all."""
    handler.api.closing.wait(30)
    handler.close_connection = True


@contextmanager
def api_server(*, tls: bool = False) -> Iterator[ApiServer]:
    """A server that runs; with `tls` its certificate is `CERTIFICATE`, which signs itself."""
    api = ApiServer()
    bound = type("Bound", (Handler,), {"api": api})
    server = ThreadingHTTPServer(("127.0.0.1", 0), bound)
    server.daemon_threads = True
    server.block_on_close = False
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    api.address = f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}"
    try:
        yield api
    finally:
        api.closing.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
