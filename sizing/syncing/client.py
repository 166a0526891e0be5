"""The cluster's API through the official client: its credentials and transport, and plain JSON.

The client's typed objects cost about a millisecond each, so answers are read as dictionaries.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import socket
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, cast
from urllib.parse import urlsplit

import urllib3
import yaml
from django.conf import settings
from kubernetes.client import ApiClient, Configuration  # type: ignore[import-untyped]
from kubernetes.client.exceptions import ApiException  # type: ignore[import-untyped]
from kubernetes.config import (  # type: ignore[import-untyped]
    ConfigException,
    load_incluster_config,
    load_kube_config,
)
from urllib3.connection import HTTPConnection
from urllib3.response import HTTPResponse

from sizing.syncing.failures import SyncFailure, broken, refused
from sizing.syncing.timing import Timing

CONNECTING = "connecting"
MOST_CONNECTIONS = 20

# A peer that is gone without a word is noticed after about a minute.
_ALIVE = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
for _name, _value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
    if hasattr(socket, _name):
        _ALIVE.append((socket.IPPROTO_TCP, getattr(socket, _name), _value))


class Cluster:
    """A connection to the API server, with the credentials as they were when it was made."""

    def __init__(self, configuration: Configuration, timing: Timing) -> None:
        self.server = _without_password(configuration.host)
        self.verified = bool(configuration.verify_ssl)
        self.secrets = _secrets_of(configuration)
        self._timing = timing
        self._client = ApiClient(configuration)
        self._client.user_agent = "llmgw-admin"

    def get(self, path: str, query: Mapping[str, Any], doing: str, accept: str) -> dict[str, Any]:
        """The JSON object at a path. Raises `SyncFailure`."""
        response = self._open(path, query, doing, accept, self._timing.answer)
        with telling(doing):
            answer = json.loads(response.data)
        if not isinstance(answer, dict):
            raise SyncFailure("the answer is not a JSON object", doing)
        return answer

    def open(self, path: str, query: Mapping[str, Any], doing: str, accept: str) -> HTTPResponse:
        """An answer that comes line by line. It has to begin soon, then it may be silent for long.

        Raises `SyncFailure`.
        """
        response = self._open(path, query, doing, accept, self._timing.begin)
        # The connection gives its socket away where the server will close it; this still knows it.
        cast(Any, response._sock_shutdown).__self__.settimeout(self._timing.silence)
        return response

    def _open(
        self, path: str, query: Mapping[str, Any], doing: str, accept: str, silence: float
    ) -> HTTPResponse:
        headers = {"Accept": accept, "User-Agent": self._client.user_agent}
        with telling(doing, self):
            self._client.update_params_for_auth(headers, [], ["BearerToken"])
            if "authorization" in headers:  # a token file may end with a line break
                headers["authorization"] = headers["authorization"].strip()
                self.secrets |= _secrets_in(headers["authorization"])  # it may be newer than the connection
            response: HTTPResponse = self._client.rest_client.GET(
                self._client.configuration.host + path,
                headers=headers,
                query_params=dict(query),
                _preload_content=False,
                _request_timeout=(self._timing.connect, silence),
            )
        return response


@contextmanager
def telling(doing: str, cluster: Cluster | None = None) -> Iterator[None]:
    """Whatever the transport raises becomes a `SyncFailure`, without the cluster's secrets."""
    try:
        yield
    except ApiException as error:
        secrets: Collection[str] = cluster.secrets if cluster else ()
        raise refused(error.status or 0, error.reason, error.body, doing, secrets) from None
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        raise broken(error, doing) from None


def connect(timing: Timing) -> Cluster:
    """The cluster that the settings name; kubeconfig, token files and plugins are read anew each time.

    Nothing is asked of it yet. Raises `SyncFailure` where the configuration cannot be used.
    """
    configuration = Configuration()  # with the proxy that the environment names
    configuration.retries = False
    configuration.socket_options = [*HTTPConnection.default_socket_options, *_ALIVE]
    configuration.connection_pool_maxsize = MOST_CONNECTIONS
    try:
        if settings.KUBERNETES.mode == "in-cluster":
            load_incluster_config(configuration)
        else:
            _load_kubeconfig(configuration)
        cluster = Cluster(configuration, timing)
    except ConfigException as error:
        raise SyncFailure(_config_words(str(error)), CONNECTING) from None
    except yaml.YAMLError as error:
        raise SyncFailure(f"the kubeconfig is not YAML{_line(error)}", CONNECTING) from None
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else "a file of it cannot be read"
        raise SyncFailure(f"the kubeconfig cannot be used: {what}", CONNECTING) from None
    except (binascii.Error, ValueError, TypeError, KeyError, AttributeError):
        # Its text might hold a piece of the file, and so a secret.
        raise SyncFailure("the kubeconfig cannot be used: its form is wrong", CONNECTING) from None
    if not cluster.verified:
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # it is told once a run instead
    return cluster


def _load_kubeconfig(configuration: Configuration) -> None:
    paths = settings.KUBERNETES.kubeconfig
    if not any(os.path.exists(path) for path in paths.split(os.pathsep)):
        raise SyncFailure(f"there is no kubeconfig at {paths}", CONNECTING)
    load_kube_config(
        paths,
        context=settings.KUBERNETES.context or None,
        client_configuration=configuration,
        persist_config=False,
    )


def _config_words(text: str) -> str:
    """The client's words may repeat a whole entry with its token, so only what is surely safe is kept."""
    found = re.match(
        r"Invalid kube-config file\. Expected object with name (\S+) in \S*(context|cluster)s list", text
    )
    if found:
        return f'the kubeconfig has no {found[2]} "{found[1]}"'
    found = re.match(r"Invalid kube-config file\. Expected key ([\w-]+) in", text)
    if found:
        return f"the kubeconfig cannot be used: it lacks {found[1]}"
    if text.startswith(("File does not exist: ", "Service ", "Cert file", "Token file")):
        return f"the cluster's configuration cannot be used: {text.rstrip('.')}"
    return "the kubeconfig cannot be used"


def _secrets_of(configuration: Configuration) -> frozenset[str]:
    """What must never be told of a configuration: tokens, and passwords for the server and the proxy."""
    found = frozenset[str]().union(*(_secrets_in(key) for key in configuration.api_key.values()))
    passwords = configuration.password, _password(configuration.host), _password(configuration.proxy)
    return found | {password for password in passwords if password}


def _secrets_in(authorization: str) -> frozenset[str]:
    """The credentials of a header's value, which its scheme precedes; of `Basic` also the password."""
    credentials = authorization.split()[-1:]
    if authorization.lower().startswith("basic "):
        with suppress(ValueError):
            credentials.append(base64.b64decode(credentials[0]).decode().partition(":")[2])
    return frozenset(text for text in credentials if text)


def _password(url: str | None) -> str | None:
    return urlsplit(url or "").password


def _line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f" (line {mark.line + 1})" if mark else ""


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
