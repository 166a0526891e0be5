"""Somebody who is signed in, by a token and by a session, and asks a desk over HTTP."""

from __future__ import annotations

import http.client
import json
import uuid
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore

from sizing.models import Refresh
from sizing.services.tokens import create_token


@dataclass(frozen=True)
class Client:
    """An administrator. Answers of a desk that cannot be reached have the status 0."""

    token: str
    session: str

    def get(self, address: str, path: str) -> tuple[int, str]:
        return self._ask("GET", address, path)

    def measure(self, address: str, model: str) -> tuple[int, str]:
        """Ask for a measurement by the API."""
        return self._ask("POST", address, f"/api/v1/models/{model}/refresh")

    def label(self, address: str) -> tuple[int, str]:
        """Write something: a profile."""
        name = f"written-{uuid.uuid4().hex[:8]}"
        body = {"name": name, "input_tokens": 1, "output_tokens": 1, "slo": {"ttft_ms": 1}}
        return self._ask("POST", address, "/api/v1/profiles", json.dumps(body))

    def _ask(self, method: str, address: str, path: str, body: str = "{}") -> tuple[int, str]:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        if not path.startswith("/api/"):
            headers = {"Cookie": f"sessionid={self.session}"}
        try:
            connection.request(method, path, body=body if method == "POST" else None, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error)
        finally:
            connection.close()


def signed_in() -> Client:
    """Needs the rows of the desk, and its secret key in this process."""
    user, _ = User.objects.get_or_create(username="faults", is_superuser=True, is_staff=True)
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    assert session.session_key is not None
    return Client(create_token("faults", "faults"), session.session_key)


def newest_of(model: str) -> Refresh:
    return Refresh.objects.filter(variant__model__name=model).latest("pk")
