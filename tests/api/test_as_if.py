"""The target view as if something were other than it is."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings
from rest_framework.test import APIClient

from sizing import snapshot
from sizing.models import Node, Replica
from tests import builders

pytestmark = pytest.mark.django_db

URL = "/api/v1/models/llama/target"


@pytest.fixture
def closed(admin: APIClient) -> None:
    chat = builders.profile()
    tp4 = builders.variant(builders.model(default_profile=chat))
    builders.measurement(tp4, chat)
    builders.replica("llama:0", tp4, builders.node("gpu-a1", 4), (0, 1, 2, 3))
    builders.node("gpu/b 7", 4, schedulable=False)


def ask(client: APIClient, **params: Any) -> dict[str, Any]:
    response = client.get(URL, {"tokens_per_sec": 2000, **params})
    assert response.status_code == 200, response.content
    form: dict[str, Any] = response.json()
    return form


@pytest.mark.usefixtures("closed")
def test_a_suggested_change_is_asked_again_and_changes_nothing(admin: APIClient) -> None:
    before = ask(admin)
    assert (before["room"], before["fits"], "as_if" in before) == (0, False, False)
    change = before["changes"][0]
    assert change == {"text": "uncordon gpu/b 7", "gain": 1, "note": "", "as_if": ["uncordon:gpu%2Fb%207"]}
    after = ask(admin, as_if=change["as_if"])
    assert (after["room"], after["fits"], after["as_if"]) == (1, True, change["as_if"])
    assert list(after)[6] == "as_if"
    assert {**ask(admin), "measurement": None} == {**before, "measurement": None}
    assert not Node.objects.get(name="gpu/b 7").schedulable


@pytest.mark.usefixtures("closed")
def test_several_are_supposed_in_order_and_every_node_tells_of_it(admin: APIClient) -> None:
    as_if = ["uncordon:gpu/b 7", "move:llama%3A0:gpu%2Fb 7", "more_like:gpu-a1"]
    form = ask(admin, as_if=as_if, explain="nodes")
    assert (form["room"], form["as_if"]) == (2, as_if)
    assert [(n["node"], n["code"], n["holders"]) for n in form["nodes"]] == [
        ("gpu-a1", "open", []),
        ("gpu/b 7", "too_few_free_gpus", ["llama:0"]),
        ("gpu-a1 +1", "open", []),
    ]
    assert (ask(admin, as_if="ended:llama%3A0")["current"], Replica.objects.count()) == (0, 1)


@pytest.mark.usefixtures("closed")
@pytest.mark.parametrize(
    ("path", "params", "status", "code", "error"),
    [
        (URL, {"as_if": "uncordon:gpu-b8"}, 400, "invalid", 'as_if "uncordon:gpu-b8": no node "gpu-b8"'),
        (URL, {"as_if": ["max_replicas:2", ""]}, 400, "invalid", 'as_if "": there are uncordon:NODE, '),
        (URL, {"as_if": ["more_like:gpu-a1"] * 21}, 400, "invalid", "as_if may be given at most 20 times"),
        (URL, {"asif": "x"}, 400, "invalid", 'unknown parameter "asif"; there are tokens_per_sec, profile,'),
        (URL.replace("llama", "x"), {"as_if": "max_replicas:2"}, 404, "not_found", 'no model "x"'),
    ],
)
def test_what_cannot_be_supposed_is_refused_in_the_usual_form(
    admin: APIClient, path: str, params: dict[str, Any], status: int, code: str, error: str
) -> None:
    response = admin.get(path, {"tokens_per_sec": 2000, **params})
    form = response.json()
    assert (response.status_code, form["code"], list(form)) == (status, code, ["error", "code"])
    assert form["error"].startswith(error)


@pytest.mark.usefixtures("closed")
def test_what_was_supposed_is_asked_anew_once_the_cluster_changed(admin: APIClient) -> None:
    assert ask(admin, as_if="ended:llama%3A0")["free_room"] == 1
    Node.objects.filter(name="gpu-a1").update(schedulable=False)
    builders.node("gpu-c1", 8)
    assert ask(admin, as_if="ended:llama%3A0")["free_room"] == 2


@pytest.mark.usefixtures("closed")
@override_settings(THROTTLE=10**9)
def test_few_such_answers_are_kept(admin: APIClient) -> None:
    builders.node("gpu-d1", 0)  # the change log has a row, so that answers are kept
    for limit in range(2 * snapshot.SUPPOSING_KEPT):
        ask(admin, as_if=f"max_replicas:{limit}")
        assert 1 <= len(snapshot.current().supposing) <= snapshot.SUPPOSING_KEPT
    assert not snapshot.current().answers
