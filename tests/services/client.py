"""Somebody who asks the API of a desk, by a token."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Client:
    """address: of a desk, such as ``http://127.0.0.1:8000/``."""

    address: str
    token: str

    def get(self, path: str) -> Any:
        """What stands at a path below ``/api/v1/``."""
        return self._ask("GET", path, 200)

    def post(self, path: str, status: int) -> Any:
        """The answer to an empty request, which has to be of this status."""
        return self._ask("POST", path, status)

    def _ask(self, method: str, path: str, status: int) -> Any:
        connection = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=30)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            connection.request(method, f"/api/v1/{path}", "{}" if method == "POST" else None, headers)
            answer = connection.getresponse()
            body = answer.read().decode()
        finally:
            connection.close()
        assert answer.status == status, (path, answer.status, body)
        return json.loads(body)
