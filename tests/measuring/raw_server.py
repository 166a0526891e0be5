"""A server of a few lines for what no HTTP library would send: given bytes, given pauses, then the end."""

from __future__ import annotations

import socketserver
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

Step = bytes | float
"""Bytes to send, or seconds to wait."""

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@contextmanager
def raw_server(reply: Callable[[bytes], Sequence[Step]]) -> Iterator[str]:
    """Answer each connection's one request by the steps that `reply` makes of it; yields the base URL."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            request = b""
            while b"\r\n\r\n" not in request:
                data = self.request.recv(65_536)
                if not data:
                    return
                request += data
            head, _, body = request.partition(b"\r\n\r\n")
            fields = [line.partition(b":") for line in head.lower().split(b"\r\n")]
            length = next((int(value) for name, _, value in fields if name == b"content-length"), 0)
            while len(body) < length:
                body += self.request.recv(65_536)
            try:
                for step in reply(head + b"\r\n\r\n" + body):
                    if isinstance(step, float):
                        time.sleep(step)
                    else:
                        self.request.sendall(step)
            except OSError:
                return

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True
        block_on_close = False
        request_queue_size = 128

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()
