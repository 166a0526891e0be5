"""Mapping rules: checked as they are written, tried on the pods that were last seen, then saved."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from sizing.inventory.kubernetes import objects
from sizing.inventory.kubernetes.counting import count
from sizing.inventory.kubernetes.facts import Listing
from sizing.inventory.kubernetes.mapping import map_pods
from sizing.models import ClusterSync, MappingRule, Replica
from sizing.syncing import seen
from tests.admin.brought import VIEWING, brought, do
from tests.admin.cluster import person
from tests.admin.test_every_page import HOSTILE
from tests.admin.test_measurement_page import words
from tests.cluster_lists import LLAMA, as_bytes, node, pod

ADD = "/admin/sizing/mappingrule/add/"
LIST = "/admin/sizing/mappingrule/"
PODS = "/admin/sizing/mappingrule/pods/"
RULE = {
    "name": "by team",
    "position": "0",
    "enabled": "on",
    "by": "label",
    "key": "team",
    "pattern": "(.+)",
    "namespace": "",
    "model": r"team-\1",
    "variant": "",
}
TWO_PODS = as_bytes(
    node(),
    pod("llama-0", gpus=2, labels={"team": "rag"}),
    pod("llama-1", gpus=2),
)


@pytest.fixture
def two_pods(boss: Client) -> None:
    """Two pods of one model, of which one has a label that rules can go by."""
    do(boss, brought(boss, TWO_PODS), "import")


def preview(client: Client, path: str = ADD, **fields: str) -> str:
    response = client.post(path, RULE | fields | {"_preview": "1"})
    assert response.status_code == 200
    return words(response.content.decode())


def errors(client: Client, **fields: str) -> dict[str, list[str]]:
    response = client.post(ADD, RULE | fields)
    assert response.status_code == 200
    assert not MappingRule.objects.exists()
    found: dict[str, list[str]] = response.context["adminform"].form.errors
    return dict(found)


# Checked ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "at", "error"),
    [
        ({"pattern": "("}, "pattern", "This is no regular expression: missing )"),
        ({"pattern": ""}, "pattern", "This field is required."),
        ({"namespace": "*"}, "namespace", "This is no regular expression: nothing to repeat"),
        ({"key": ""}, "key", "A rule by label needs the label's name."),
        ({"model": r"\2"}, "model", "The pattern does not give that: invalid group reference 2"),
        ({"variant": r"\g<size>"}, "variant", "The pattern does not give that: unknown group name"),
        ({"model": r"a\m"}, "model", r"The pattern does not give that: bad escape \m"),
    ],
)
def test_a_rule_that_cannot_work_is_an_error_at_its_field(
    boss: Client, fields: dict[str, str], at: str, error: str
) -> None:
    found = errors(boss, **fields)
    assert list(found) == [at]
    assert found[at][0].startswith(error)


@pytest.mark.parametrize(
    "fields",
    [
        {"pattern": r"(?i)(?P<size>\d+)b|x", "variant": r"\g<size>"},
        {"pattern": "(?x) (a) # a comment"},
        {"by": "owner", "key": "", "pattern": "Deployment/(.+)"},
        {"model": ""},
    ],
)
def test_a_rule_that_can_work_is_saved_and_says_from_when(boss: Client, fields: dict[str, str]) -> None:
    if fields.get("model") == "":
        fields = {**fields, "pattern": ".*"}
    response = boss.post(ADD, RULE | fields, follow=True)
    assert "The rules work from the next import or sync on." in words(response.content.decode())
    assert MappingRule.objects.get().name == "by team"


def test_the_form_says_how_groups_stand_in_names(boss: Client) -> None:
    assert r"\1 or \g&lt;name&gt; stand for groups" in boss.get(ADD).content.decode()


def test_the_list_says_what_rules_go_by(boss: Client) -> None:
    boss.post(ADD, RULE | {"namespace": "llm-.*"})
    assert r"by team 0 yes label team in llm-.* (.+) team-\1" in words(boss.get(LIST).content.decode())


def test_a_new_rule_is_offered_the_place_behind_the_others(boss: Client) -> None:
    assert 'name="position" value="0"' in boss.get(ADD).content.decode()
    MappingRule.objects.create(name="a", by="pod", pattern=".*", position=7)
    assert 'name="position" value="8"' in boss.get(ADD).content.decode()


# Tried -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("two_pods")
def test_a_preview_shows_what_pods_would_become_and_saves_nothing(boss: Client) -> None:
    body = preview(boss)
    assert "Not saved. 1 pod becomes something else, 1 stays as it is." in body
    assert f"llm/llama-0 Pod/llama-0 2 {LLAMA} → team-rag rule &quot;by team&quot;" in body
    assert f"llm/llama-1 Pod/llama-1 2 {LLAMA} {LLAMA} --model" in body
    assert body.index("llm/llama-0") < body.index("llm/llama-1")
    assert not MappingRule.objects.exists()


@pytest.mark.usefixtures("two_pods")
def test_a_preview_keeps_what_is_written_in_the_form(boss: Client) -> None:
    response = boss.post(ADD, RULE | {"_preview": "1", "pattern": "(r.g)"})
    assert 'value="(r.g)"' in response.content.decode()
    assert response.context["adminform"].form.errors == {}


@pytest.mark.usefixtures("two_pods")
def test_a_preview_of_a_wrong_rule_shows_its_errors_only(boss: Client) -> None:
    body = preview(boss, pattern="(")
    assert "This is no regular expression" in body
    assert "becomes something else" not in body


@pytest.mark.usefixtures("two_pods")
def test_a_preview_of_a_changed_rule_takes_it_in_the_place_of_the_saved_one(boss: Client) -> None:
    boss.post(ADD, RULE)
    row = MappingRule.objects.get()
    MappingRule.objects.create(name="all", by="pod", pattern=".*", model="all", position=9)
    path = f"/admin/sizing/mappingrule/{row.pk}/change/"
    body = preview(boss, path, model="other-team")
    assert "→ other-team" in body
    assert "→ team-rag" not in body
    assert "→ all" in body  # the pod without the label
    assert "→ other-team" not in preview(boss, path, model="other-team", position="10")
    switched_off = {name: value for name, value in RULE.items() if name != "enabled"}
    response = boss.post(path, switched_off | {"_preview": "1"})
    assert "→ team-rag" not in words(response.content.decode())
    row.refresh_from_db()
    assert (row.model, row.enabled, row.position) == (r"team-\1", True, 0)


@pytest.mark.usefixtures("two_pods")
def test_a_rule_works_from_the_next_import_on_as_its_preview_said(boss: Client) -> None:
    boss.post(ADD, RULE)
    body = words(boss.get(PODS).content.decode())
    assert "1 pod becomes something else, 1 stays as it is." in body
    assert Replica.objects.get(name="llm/llama-0").variant.model.name == LLAMA
    do(boss, brought(boss, TWO_PODS), "import")
    assert Replica.objects.get(name="llm/llama-0").variant.model.name == "team-rag"
    body = words(boss.get(PODS).content.decode())
    assert "No pod becomes something else." in body
    # Without the rule it is again what its command line says.
    MappingRule.objects.update(enabled=False)
    assert f"2 team-rag → {LLAMA} --model" in words(boss.get(PODS).content.decode())


def test_before_anything_was_seen_it_says_so(boss: Client) -> None:
    assert "No pods were seen yet: import the cluster first." in preview(boss)
    assert "No pods were seen yet: import the cluster first." in words(boss.get(PODS).content.decode())


@pytest.mark.usefixtures("two_pods")
def test_a_rule_that_is_left_out_is_said_with_its_reason(boss: Client) -> None:
    MappingRule.objects.create(name="broken", by="pod", pattern="(")
    assert "rule &quot;broken&quot; is left out: no regular expression" in words(
        boss.get(PODS).content.decode()
    )


def test_what_pods_are_called_is_escaped(boss: Client) -> None:
    odd = pod("llama-0", labels={"team": HOSTILE})
    do(boss, brought(boss, as_bytes(node(), odd)), "import")
    response = boss.post(ADD, RULE | {"_preview": "1", "name": HOSTILE})
    assert HOSTILE not in response.content.decode()
    assert "&lt;script&gt;" in response.content.decode()


# Who may ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("two_pods")
def test_who_may_only_view_rules_can_see_what_they_do_and_try_none() -> None:
    row = MappingRule.objects.create(name="all", by="pod", pattern=".*", model="all")
    client = Client()
    client.force_login(person("looker", "view_mappingrule", *VIEWING))
    assert "2 pods become something else" in words(client.get(PODS).content.decode())
    path = f"/admin/sizing/mappingrule/{row.pk}/change/"
    assert "_preview" not in client.get(path).content.decode()
    assert client.post(path, RULE | {"_preview": "1"}).status_code == 403
    assert client.get(ADD).status_code == 403
    nobody = Client()
    nobody.force_login(person("nobody", *VIEWING))
    assert nobody.get(PODS).status_code == 403


@pytest.mark.usefixtures("two_pods")
@pytest.mark.parametrize("missing", VIEWING)
def test_who_may_not_view_what_pods_become_can_write_rules_but_sees_no_pods(missing: str) -> None:
    perms = [f"{verb}_mappingrule" for verb in ("view", "add", "change", "delete")]
    client = Client()
    client.force_login(person("writer", *perms, *(set(VIEWING) - {missing})))
    assert client.get(PODS).status_code == 403
    assert client.post(ADD, RULE | {"_preview": "1"}).status_code == 403
    assert "_preview" not in client.get(ADD).content.decode()
    assert PODS not in client.get(LIST).content.decode()
    assert client.post(ADD, RULE).status_code == 302
    row = MappingRule.objects.get()
    path = f"/admin/sizing/mappingrule/{row.pk}/change/"
    assert PODS not in client.get(path).content.decode()
    assert client.post(path, RULE | {"_preview": "1"}).status_code == 403


# What is kept ----------------------------------------------------------------------------------------


def packed(*items: dict[str, Any]) -> bytes:
    listing = Listing()
    for item in items:
        objects.add(listing, item)
    objects.finish(listing)
    counted = count(listing)
    return seen.pack(counted, map_pods(counted, []))


def test_the_same_pods_are_kept_as_the_same_bytes_in_whatever_order_they_came() -> None:
    a, b = pod("a", gpus=1), pod("b", gpus=1)
    assert packed(node(), a, b) == packed(b, node(), a)
    assert packed(node(), a) != packed(node(), b)


def test_secrets_of_command_lines_are_not_kept() -> None:
    one = pod("a")
    one["spec"]["containers"][0]["args"] += ["--api-key", "sk-123", "--hf-token=hf_456", "--max-tokens", "9"]
    one["spec"]["containers"][0]["env"] = [{"name": "HF_TOKEN", "value": "hf_789"}]
    (kept,) = seen.unpack(packed(node(), one)).pods
    command = kept.facts.containers[0].words[0]
    assert not any(secret in command for secret in ("sk-123", "hf_456", "hf_789"))
    assert command.endswith("--max-tokens 9")


def test_of_many_pods_each_owner_keeps_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "MOST_PODS", 3)
    owned = [{"kind": "StatefulSet", "name": name, "controller": True} for name in "ab"]
    pods = [
        pod(f"{'ab'[i // 5]}-{i}", on=None, gpus=1, ownerReferences=[owned[i // 5] | {"uid": "u"}])
        for i in range(10)
    ]
    found = seen.unpack(packed(node(), *pods))
    assert found.total == 10
    assert [one.facts.name for one in found.pods] == ["a-0", "a-1", "b-5"]
    assert {one.owner for one in found.pods} == {"StatefulSet/a", "StatefulSet/b"}


def test_pods_without_devices_are_not_kept(db: None) -> None:
    assert seen.unpack(packed(node(), pod("web", gpus=0))).pods == ()
    assert seen.unpack(None).pods == ()
    assert not ClusterSync.objects.exists()
