"""Requests that no page of the desk makes: a clear 400, or what cannot be held left out."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from sizing.admin import choosing
from tests import builders

HUGE = "9" * 30


@pytest.mark.parametrize("value", ["abc", "\0", HUGE])
def test_a_choice_that_is_no_number_is_a_400(
    boss: Client, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant = builders.variant(builders.model("llama"))
    for table, field in (
        ("replica", "variant"),
        ("variant", "model"),
        ("target", "model"),
        ("measurement", "profile"),
        ("servedmodel", "default_profile"),
    ):
        # Where all choices are in the page, the form itself says that this is none of them.
        answer = boss.post(f"/admin/sizing/{table}/add/", {field: value})
        assert (answer.status_code, field in answer.context["adminform"].form.errors) == (200, True)
        with monkeypatch.context() as patch:
            patch.setattr(choosing, "OFFERED", -1)
            answer = boss.post(f"/admin/sizing/{table}/add/", {field: value})
        _refused(answer, value)
    node = builders.node("n1", 1)
    action: Any = {"action": "cordon", "_selected_action": [value]}
    _refused(boss.post("/admin/sizing/node/", action), value)
    _refused(boss.get(f"/admin/sizing/node/{node.pk}/change/?_to_field="))
    _refused(boss.get(f"/admin/sizing/variant/?pk__in={HUGE}"), HUGE)
    _refused(boss.get(reverse("admin:sizing_measurement_file", args=[int(HUGE), 1])), HUGE)
    _refused(boss.post("/admin/auth/group/add/", {"name": "x", "permissions": [HUGE]}), HUGE)
    assert boss.get(f"/admin/sizing/replica/add/?variant={HUGE}").status_code == 200  # none of the choices
    variant.refresh_from_db()


def test_what_an_address_fills_in_wrongly_is_left_out(boss: Client) -> None:
    for query in (
        "variant/add/?model=abc",
        "replica/add/?variant=null",
        "replica/add/?started_at=x",
        "measurement/add/?measured_at=x&variant=a",
        "target/add/?model=a&profile=b&variant=c",
    ):
        assert boss.get(f"/admin/sizing/{query}").status_code == 200, query
    filled = boss.get("/admin/sizing/measurement/add/?measured_at=2026-11-02T09:00:00Z").content.decode()
    assert 'value="2026-11-02"' in filled


def test_a_form_has_no_more_lines_than_are_sent_and_no_more_than_250(boss: Client) -> None:
    node = builders.node("n1", 1)
    url = reverse("admin:sizing_node_change", args=[node.pk])
    counts = {"name": "n1", "gpus-TOTAL_FORMS": "2000", "gpus-INITIAL_FORMS": "0"}
    lines = {f"gpus-{i}-index": str(i) for i in range(3)}
    for sent, most in (({}, 0), (lines, 3)):
        body = boss.post(url, counts | sent).content.decode()
        assert f"Please submit at most {most} forms." in body
    many = {f"gpus-{i}-DELETE": "on" for i in range(300)}
    answer = boss.post(url, counts | many | {"gpus-TOTAL_FORMS": "300"})
    assert "Please submit at most 250 forms." in answer.content.decode()
    too_many = {f"x{i}": "" for i in range(1001)}
    assert boss.post(url, too_many).status_code == 400


def _refused(answer: Any, value: str = "") -> None:
    if value == HUGE and connection.vendor == "postgresql":  # there it is a number that no row has
        assert answer.status_code in (200, 302, 404)
        return
    assert answer.status_code == 400
    assert "that its field cannot hold" in answer.content.decode()
