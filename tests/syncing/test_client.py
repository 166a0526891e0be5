"""Connecting by a kubeconfig or a service account, and what goes wrong, in words without secrets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
import yaml

from llmgw_admin.environment import KubernetesEnvironment
from sizing.syncing import kinds
from sizing.syncing.client import connect
from sizing.syncing.failures import SyncFailure
from sizing.syncing.listing import list_all
from tests.syncing.api_server import (
    CERTIFICATE,
    ApiServer,
    answers,
    api_server,
    cuts,
    hangs,
    is_silent,
    repeats_the_token,
    sends,
)
from tests.syncing.conftest import QUICK, Story, play, write_kubeconfig
from tests.syncing.made import node

NODES = kinds.REQUIRED[0]


def failure_of_connecting() -> SyncFailure:
    with pytest.raises(SyncFailure) as caught:
        kinds.find(connect(QUICK))
    assert "\n" not in caught.value.words
    return caught.value


def failure_of_listing() -> str:
    with pytest.raises(SyncFailure) as caught:
        list_all(connect(QUICK), NODES)
    assert caught.value.doing == "listing nodes"
    return caught.value.words


def test_the_best_served_version_of_each_kind_is_found(api, kubeconfig):
    resources, warnings = kinds.find(connect(QUICK))
    paths = {resource.plural: resource.path for resource in resources}
    assert paths["pods"] == "/api/v1/pods"
    assert paths["resourceslices"] == "/apis/resource.k8s.io/v1/resourceslices"
    assert paths["replicasets"] == "/apis/apps/v1/replicasets"
    assert "rayclusters" not in paths
    assert warnings == []


def test_a_server_that_does_not_tell_its_kinds_gives_nodes_and_pods(api, kubeconfig):
    api.always["get", "apis"] = answers(403)
    resources, warnings = kinds.find(connect(QUICK))
    assert [resource.plural for resource in resources] == ["nodes", "pods"]
    assert warnings == ["only nodes and pods are read: the cluster does not tell what else it has (403)"]


def test_a_server_that_is_no_kubernetes_api_is_told(api, kubeconfig):
    api.always["get", "apis"] = lambda handler: handler.json(200, {"hello": "world"})
    assert (
        failure_of_connecting().words == "the answer is not a list of API groups; is this a Kubernetes API?"
    )


def test_a_kubeconfig_that_is_gone_is_told(kubeconfig):
    kubeconfig.unlink()
    failure = failure_of_connecting()
    assert (failure.words, failure.doing) == (f"there is no kubeconfig at {kubeconfig}", "connecting")


def test_a_context_that_is_not_there_is_told(kubeconfig, settings):
    settings.KUBERNETES = KubernetesEnvironment("kubeconfig", str(kubeconfig), "prod")
    assert failure_of_connecting().words == 'the kubeconfig has no context "prod"'


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c["users"][0].pop("user"), "the kubeconfig cannot be used: it lacks user"),
        (lambda c: c.update(users=["s3cret"]), "the kubeconfig cannot be used"),
        (
            lambda c: c["contexts"][0]["context"].pop("cluster"),
            "the kubeconfig cannot be used: it lacks cluster",
        ),
        (lambda c: c.pop("current-context"), "the kubeconfig cannot be used: it lacks current-context"),
        (
            lambda c: c["clusters"][0]["cluster"].update(
                {"server": "https://127.0.0.1:1", "certificate-authority-data": "AAA"}
            ),
            "the kubeconfig cannot be used: its form is wrong",
        ),
        (
            lambda c: c["clusters"][0]["cluster"].update(
                {"server": "https://127.0.0.1:1", "certificate-authority": "/no/ca.crt"}
            ),
            "the cluster's configuration cannot be used: File does not exist: /no/ca.crt",
        ),
        (lambda c: c["users"][0]["user"].update(token="s3cret\nX: y"), "the request cannot be sent"),
    ],
)
def test_a_broken_kubeconfig_is_told_without_its_secrets(kubeconfig, api, change, words):
    write_kubeconfig(kubeconfig, api.address, token="s3cret")
    config = yaml.safe_load(kubeconfig.read_text())
    change(config)
    kubeconfig.write_text(yaml.safe_dump(config))
    failure = failure_of_connecting()
    assert failure.words.startswith(words)
    assert "s3cret" not in failure.words


def test_a_kubeconfig_that_is_not_yaml_is_told_by_its_line(kubeconfig):
    kubeconfig.write_text("users:\n  - token: s3cret: x\n")
    assert failure_of_connecting().words == "the kubeconfig is not YAML (line 2)"


def test_a_token_file_is_read_anew_with_each_connection_and_may_end_with_a_line_break(api, kubeconfig):
    (kubeconfig.parent / "token").write_text("first\n")
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"] = {"tokenFile": "token"}
    kubeconfig.write_text(yaml.safe_dump(config))
    kinds.find(connect(QUICK))
    (kubeconfig.parent / "token").write_text("second\n")
    kinds.find(connect(QUICK))
    assert [request.token for request in api.requests] == ["first", "second"]


def test_a_credential_plugin_is_asked_anew_with_each_connection(api, kubeconfig):
    plugin = kubeconfig.parent / "plugin"
    credential = (
        '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"\'$n\'"}}'
    )
    plugin.write_text(
        f"#!/bin/sh\nn=$(cat count); echo x >> count\necho '{credential}'\n".replace(
            "$(cat count)", "t$(wc -l < count)"
        )
    )
    plugin.chmod(0o755)
    (kubeconfig.parent / "count").write_text("")
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"] = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "./plugin",
            "interactiveMode": "Never",
        }
    }
    kubeconfig.write_text(yaml.safe_dump(config))
    kinds.find(connect(QUICK))
    kinds.find(connect(QUICK))
    assert [request.token for request in api.requests] == ["t0", "t1"]


@pytest.fixture
def secure(api: ApiServer) -> Iterator[ApiServer]:
    with api_server(tls=True) as server:
        yield server


def test_a_pod_uses_its_service_account(secure, settings, tmp_path, monkeypatch):
    (tmp_path / "token").write_text("of-the-pod\n")
    host, _, port = secure.address.removeprefix("https://").partition(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    module = "kubernetes.config.incluster_config"
    monkeypatch.setattr(f"{module}.SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(f"{module}.SERVICE_CERT_FILENAME", str(CERTIFICATE))
    settings.KUBERNETES = KubernetesEnvironment("in-cluster", "", "")
    cluster = connect(QUICK)
    kinds.find(cluster)
    assert (cluster.verified, secure.requests[0].token) == (True, "of-the-pod")
    (tmp_path / "token").unlink()
    assert failure_of_connecting().words == (
        "the cluster's configuration cannot be used: Service token file does not exist"
    )


def test_a_certificate_that_is_not_trusted_is_told(secure, kubeconfig):
    write_kubeconfig(kubeconfig, secure.address)
    words = "TLS: the API server's certificate is not trusted: self-signed certificate"
    assert failure_of_listing() == words


def test_a_server_without_tls_is_told(api, kubeconfig):
    write_kubeconfig(kubeconfig, api.address.replace("http", "https"))
    assert failure_of_listing().startswith("TLS: no secure connection to the API server")


@pytest.mark.django_db
def test_a_certificate_that_is_not_to_be_verified_is_a_warning(secure, kubeconfig, brought):
    write_kubeconfig(kubeconfig, secure.address, cluster={"insecure-skip-tls-verify": True})
    secure.put("nodes", node("n1"))

    def story() -> Story:
        yield lambda: brought.nodes == {"n1"}

    play(story(), brought)
    assert brought.listings[0].warnings[0] == (
        "the API server's certificate is not verified: insecure-skip-tls-verify is set"
    )


@pytest.mark.django_db
def test_watches_end_with_their_run(secure, kubeconfig, brought):
    write_kubeconfig(kubeconfig, secure.address, cluster={"certificate-authority": str(CERTIFICATE)})
    secure.put("nodes", node("n1"))
    secure.always["watch", "nodes"] = is_silent

    def story() -> Story:
        yield lambda: brought.nodes == {"n1"} and len(secure.asked("watch", "nodes")) == 1

    play(story(), brought, replace(QUICK, silence=60))
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("sync ")]
    for thread in threads:
        thread.join(5)
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (answers(401), "the cluster refused the token (401 Unauthorized)"),
        (
            answers(403, 'nodes is forbidden: User "system:anonymous" cannot list resource "nodes"'),
            "the cluster does not know who asks: no token or certificate was sent (403 Forbidden)",
        ),
        (answers(403, "no\nrights"), "the cluster forbids listing nodes (403 Forbidden): no rights"),
        (answers(429, "slow down"), "the API server answered 429 Too Many Requests: slow down"),
        (answers(302), "the API server answered 302 Found: it is so"),
        (answers(503, "x" * 400), "the API server answered 503 Service Unavailable: " + "x" * 299 + "…"),
        (sends(b"<html>"), "the answer is not JSON"),
        (sends(b"\xff\xfe\xfd"), "the answer is not JSON"),
        (sends(b"[]"), "the answer is not a JSON object"),
        (sends(b"{}"), "the list does not tell its version"),
        (sends(b'{"items": 1}'), "the answer has no list of items"),
        (sends(b'{"items": ["x"]}'), "an item of the list is not an object"),
        (cuts(b'{"items": ['), "the connection to the API server broke off"),
        (hangs, "the API server was silent for too long"),
    ],
)
def test_what_is_wrong_with_an_answer_is_told_in_words(api, kubeconfig, fault, words):
    api.once("list", "nodes", fault)
    assert failure_of_listing() == words


def test_an_empty_list_has_a_version_too(api, kubeconfig):
    listing, version = list_all(connect(QUICK), NODES)
    assert (listing.nodes, listing.kinds, version) == ({}, {"Node"}, "100")


def test_nobody_who_listens_is_told(kubeconfig):
    write_kubeconfig(kubeconfig, "http://127.0.0.1:1")
    assert failure_of_listing() == "no connection to the API server: connection refused"


def test_a_name_that_cannot_be_resolved_is_told(kubeconfig, monkeypatch):
    def fails(*args: object, **kwargs: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    write_kubeconfig(kubeconfig, "http://api.invalid")
    assert failure_of_listing() == (
        "the name of the API server cannot be resolved (name or service not known)"
    )


def test_a_password_in_the_address_is_not_shown(kubeconfig):
    write_kubeconfig(kubeconfig, "https://ada:s3cret@127.0.0.1:6443")
    assert connect(QUICK).server == "https://127.0.0.1:6443"


def test_a_list_that_always_expires_is_asked_for_again_after_growing_pauses(api, kubeconfig):
    api.always["list", "nodes"] = answers(410, "too old", "Expired")
    pauses = []

    class Stopped(threading.Event):
        def wait(self, timeout=None):
            pauses.append(timeout)
            return False

    with pytest.raises(SyncFailure):
        list_all(connect(QUICK), NODES, replace(QUICK, longest_pause=60), Stopped())
    assert pauses == [1, 2, 4]
    assert len(api.asked("list", "nodes")) == 4


def test_a_list_that_expires_is_not_asked_for_again_once_nobody_wants_it(api, kubeconfig):
    api.always["list", "nodes"] = answers(410, "too old", "Expired")
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(SyncFailure):
        list_all(connect(QUICK), NODES, QUICK, stopped)
    assert len(api.asked("list", "nodes")) == 1


@pytest.mark.parametrize(
    ("user", "secrets"),
    [
        ({"token": "s3cret"}, ["s3cret"]),
        ({"token": f"{'long' * 50}s3cret"}, ["s3cret", "longlong"]),
        ({"username": "u", "password": "s3cret"}, ["dTpzM2NyZXQ=", "s3cret"]),
    ],
)
def test_an_answer_that_repeats_the_credentials_is_told_without_them(api, kubeconfig, user, secrets):
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"] = user
    kubeconfig.write_text(yaml.safe_dump(config))
    api.always["list", "nodes"] = repeats_the_token
    words = failure_of_listing()
    assert words.startswith("the API server answered 500 Bad B")
    assert words.endswith(" *** by token=*** and Basic ***")
    assert not any(secret in words for secret in (*secrets, "dTpwYXNz"))


def test_a_password_of_the_proxy_or_of_basic_authentication_is_a_secret(api, kubeconfig, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://u:of-the-proxy@127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"] = {"username": "u", "password": "s3cret"}
    kubeconfig.write_text(yaml.safe_dump(config))
    cluster = connect(QUICK)
    assert cluster.secrets == {"of-the-proxy", "s3cret", "dTpzM2NyZXQ="}
