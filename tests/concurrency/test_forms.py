"""A form that was open while somebody else changed its object: refused, told, and saved over knowingly."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from sizing.models import Gpu, Measurement, Node, Replica, ServedModel, Target, Variant
from sizing.models.history import API, By
from sizing.services import editing
from tests import builders
from tests.admin.cluster import person
from tests.concurrency.forms import Form, filled, opened

pytestmark = pytest.mark.django_db


@pytest.fixture
def boss() -> Client:
    return client_of("boss")


@pytest.fixture
def node() -> Node:
    return builders.node("gpu-a1", gpus=2)


def client_of(name: str) -> Client:
    client = Client()
    client.force_login(person(name, superuser=True))
    return client


def page_of(row: Any) -> str:
    return reverse(f"admin:sizing_{row._meta.model_name}_change", args=[row.pk])


def by_ada(table: Any, pk: int, **given: Any) -> None:
    ada, _ = User.objects.get_or_create(username="ada")
    editing.save(table, given, pk, by=By(API, ada))


def text_of(answer: Any, begin: str = "<h1", end: str = "</section>") -> str:
    """What a part of a page says, on one line."""
    page = answer.content.decode()
    start = page.index(begin)
    part = page[start : page.index(end, start)]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", part)).split())


def told(answer: Any) -> str:
    return text_of(answer, '<section class="desk-card desk-conflict"')


def test_a_node_form_opened_before_a_cordon_does_not_undo_it(boss: Client, node: Node) -> None:
    form = opened(boss, page_of(node), "node_form")
    by_ada(Node, node.pk, schedulable=False)
    answer = boss.post(page_of(node), form | {"cost_per_hour": "2.5"})
    assert answer.status_code == 200
    node.refresh_from_db()
    assert (node.schedulable, node.cost_per_hour) == (False, None)
    said = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", told(answer))
    assert said == (
        "Not saved: this node was changed since you opened it"
        " ada , TIME UTC, by API: gpu-a1: Changed schedulable."
        " Changed Stored now In your form Schedulable no yes"
        " What you typed stands in the form below. Save it again to store it over what is stored now,"
        " or begin anew from that. Save over it Reload, and drop what I typed"
    )
    again = filled(answer.content.decode(), "node_form")
    assert (again["schedulable"], again["cost_per_hour"]) == ("on", "2.5")


def test_what_was_typed_is_saved_over_it_knowingly(boss: Client, node: Node) -> None:
    form = opened(boss, page_of(node), "node_form") | {"cost_per_hour": "2.5"}
    by_ada(Node, node.pk, schedulable=False)
    refused = boss.post(page_of(node), form)
    assert boss.post(page_of(node), form).status_code == 200  # the same again is no knowing
    assert boss.post(page_of(node), filled(refused.content.decode(), "node_form")).status_code == 302
    node.refresh_from_db()
    assert (node.schedulable, node.cost_per_hour) == (True, 2.5)


def test_what_changes_between_two_refusals_is_refused_again(boss: Client, node: Node) -> None:
    form = opened(boss, page_of(node), "node_form") | {"cost_per_hour": "2.5"}
    by_ada(Node, node.pk, schedulable=False)
    refused = boss.post(page_of(node), form)
    by_ada(Node, node.pk, ready=False)
    answer = boss.post(page_of(node), filled(refused.content.decode(), "node_form"))
    assert (answer.status_code, "Ready no yes" in told(answer)) == (200, True)
    assert "Schedulable no yes" not in told(answer)


def test_a_form_with_another_mistake_still_carries_what_it_showed(boss: Client, node: Node) -> None:
    form = opened(boss, page_of(node), "node_form")
    wrong = boss.post(page_of(node), form | {"cost_per_hour": "-1"})
    by_ada(Node, node.pk, schedulable=False)
    again = filled(wrong.content.decode(), "node_form") | {"cost_per_hour": "1"}
    assert "Schedulable no yes" in told(boss.post(page_of(node), again))


def test_the_same_form_sent_twice_saves_once_and_is_no_conflict(boss: Client, node: Node) -> None:
    form = opened(boss, page_of(node), "node_form") | {"cost_per_hour": "2.5"}
    assert [boss.post(page_of(node), form).status_code for _ in range(2)] == [302, 302]
    assert Node.objects.get().cost_per_hour == 2.5


def test_changes_of_other_objects_and_of_what_a_form_does_not_show_are_no_conflict(
    boss: Client, node: Node
) -> None:
    form = opened(boss, page_of(node), "node_form") | {"cost_per_hour": "2.5"}
    other = builders.node("gpu-a2")
    by_ada(Node, other.pk, schedulable=False)
    Node.objects.filter(pk=node.pk).update(stale=True)
    assert boss.post(page_of(node), form).status_code == 302
    node.refresh_from_db()
    assert (node.stale, node.cost_per_hour) == (True, 2.5)


def test_lines_that_others_changed_added_or_removed_are_told_apart(boss: Client, node: Node) -> None:
    first, second = node.gpus.order_by("index")
    form = opened(boss, page_of(node), "node_form") | {"gpus-0-used_outside_mib": "7"}
    gpu = {"type": builders.H100, "memory_mib": builders.H100_MIB, "healthy": True, "partition": False}
    one = {"index": 0, "uuid": "", "used_outside_mib": 1} | gpu
    by_ada(Node, node.pk, gpus=[one, {"index": 5, "uuid": "", "used_outside_mib": 0} | gpu])
    answer = boss.post(page_of(node), form)
    said = told(answer)
    assert "gpu-a1 GPU 0 Used outside (MiB): 1 Used outside (MiB): 7 " in said
    assert "gpu-a1 GPU 5 added nothing gpu-a1 GPU 1 removed nothing " in said
    assert "by API: gpu-a1 GPU 0: Changed used outside mib." in said
    assert "by API: gpu-a1 GPU 1: Deleted." in said
    assert not Gpu.objects.filter(pk=second.pk).exists()
    # Its other line stands for the GPU that is left, and is saved over it alone.
    assert boss.post(page_of(node), filled(answer.content.decode(), "node_form")).status_code == 302
    left = dict(node.gpus.values_list("index", "used_outside_mib"))
    assert left == {0: 7, 5: 0}
    first.refresh_from_db()


def test_saves_that_changed_nothing_do_not_hide_who_changed_it(boss: Client, node: Node) -> None:
    form = opened(boss, page_of(node), "node_form")
    by_ada(Node, node.pk, schedulable=False)
    carl = client_of("carl")
    for _ in range(5):
        assert carl.post(page_of(node), opened(carl, page_of(node), "node_form")).status_code == 302
    said = told(boss.post(page_of(node), form))
    assert "by API: gpu-a1: Changed schedulable." in said
    assert "carl" not in said


def test_a_line_that_somebody_removed_is_told_where_nothing_else_was_changed(
    boss: Client, node: Node
) -> None:
    form = opened(boss, page_of(node), "node_form")
    removing = form | {"gpus-1-DELETE": "on"}
    carl = client_of("carl")
    assert carl.post(page_of(node), removing).status_code == 302
    answer = boss.post(page_of(node), form | {"gpus-1-memory_mib": "4000"})
    assert (answer.status_code, "gpu-a1 GPU 1 removed nothing" in told(answer)) == (200, True)
    assert boss.post(page_of(node), filled(answer.content.decode(), "node_form")).status_code == 302
    # Who removed it too loses nothing.
    assert boss.post(page_of(node), removing).status_code == 302
    assert list(node.gpus.values_list("index", flat=True)) == [0]


def test_a_line_whose_gpu_is_gone_breaks_nothing_without_marks_either(boss: Client, node: Node) -> None:
    form = opened(boss, page_of(node), "node_form")
    del form["desk_seen"]
    node.gpus.get(index=0).delete()
    assert boss.post(page_of(node), form | {"gpus-1-used_outside_mib": "9"}).status_code == 302
    assert list(node.gpus.values_list("index", "used_outside_mib")) == [(1, 9)]


def test_every_kind_of_form_is_refused(boss: Client, node: Node) -> None:
    model = builders.model("llama")
    variant = builders.variant(model, "tp1", 1)
    profile = builders.profile("chat")
    rows: list[tuple[Any, dict[str, Any]]] = [
        (model, {"priority": 5}),
        (variant, {"cpu_millis": 5}),
        (profile, {"output_tokens": 77}),
        (builders.replica("r", variant, node, (0,)), {"placement": [{"node": "gpu-a1", "gpus": [1]}]}),
        (Target.objects.create(model=model, tokens_per_sec=5), {"tokens_per_sec": 6}),
        (builders.measurement(variant, profile, 1000), {"engine": "vllm"}),
    ]
    for row, given in rows:
        form = opened(boss, page_of(row), f"{row._meta.model_name}_form")
        assert boss.post(page_of(row), form).status_code == 302, row  # nothing happened meanwhile
        form = opened(boss, page_of(row), f"{row._meta.model_name}_form")
        by_ada(type(row), row.pk, **given)
        changed = changing(form, row)
        answer = boss.post(page_of(row), changed)
        assert answer.status_code == 200, row
        assert "In your form" in told(answer), row


def changing(form: Form, row: Any) -> Form:
    """The form, so that saving it would change something."""
    match row:
        case ServedModel():
            return form | {"owner": "ops"}
        case Variant() | Replica():
            return form | {"name": "other"}
        case Measurement():
            return form | {"source": "by hand"}
        case Target():
            return form | {"utilization": "0.5"}
    return form | {"input_tokens": "5"}


def test_an_account_that_was_shut_meanwhile_stays_shut(boss: Client) -> None:
    eve = User.objects.create_user("eve", is_staff=True)
    url = reverse("admin:auth_user_change", args=[eve.pk])
    form = opened(boss, url, "user_form")
    User.objects.filter(pk=eve.pk).update(is_active=False)
    answer = boss.post(url, form | {"email": "eve@example.com"})
    assert "The history does not tell by whom. Changed Stored now In your form Active no yes" in told(answer)
    eve.refresh_from_db()
    assert (eve.is_active, eve.email) == (False, "")


def test_a_sign_in_meanwhile_is_no_conflict(boss: Client) -> None:
    eve = User.objects.create_user("eve", is_staff=True)
    url = reverse("admin:auth_user_change", args=[eve.pk])
    form = opened(boss, url, "user_form")
    Client().force_login(eve)
    assert boss.post(url, form | {"email": "eve@example.com"}).status_code == 302


def test_marks_that_nobody_made_are_a_conflict_and_break_nothing(boss: Client, node: Node) -> None:
    form = opened(boss, page_of(node), "node_form") | {"cost_per_hour": "1"}
    for text in ("x", "1", ":::: : a:", "9" * 400, "-1 name:x", "1 \0:\0"):
        assert boss.post(page_of(node), form | {"desk_seen": text}).status_code == 200, text
    assert Node.objects.get().cost_per_hour is None


def test_an_object_deleted_meanwhile_is_told_with_who_did_it(boss: Client, node: Node) -> None:
    form = opened(boss, page_of(node), "node_form")
    ada, _ = User.objects.get_or_create(username="ada")
    editing.remove(Node, node.pk, by=By(API, ada))
    answer = boss.post(page_of(node), form, follow=True)
    assert answer.redirect_chain == [("/admin/sizing/node/", 302)]
    said = re.sub(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", text_of(answer, '<ul class="messagelist', "</ul>")
    )
    assert said == "The node “gpu-a1” was deleted by ada at TIME UTC. What you sent was not saved."
    assert not Node.objects.exists()


def test_who_may_not_see_nodes_learns_nothing_of_a_deleted_one(node: Node) -> None:
    editing.remove(Node, node.pk, by=By(API))
    client = Client()
    client.force_login(person("outsider"))
    assert "gpu-a1" not in client.get(page_of(node), follow=True).content.decode()


# Sent twice


def test_a_form_for_something_new_that_is_sent_twice_adds_it_once(boss: Client) -> None:
    variant = builders.variant(builders.model("llama"), "tp1", 1)
    profile = builders.profile("chat")
    url = reverse("admin:sizing_measurement_add")
    form = opened(boss, url, "measurement_form") | {
        "variant": str(variant.pk),
        "profile": str(profile.pk),
        "tok_per_sec": "100",
    }
    assert boss.post(url, form).status_code == 302
    answer = boss.post(url, form | {"tok_per_sec": "200"})
    made = Measurement.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, page_of(made))
    said = text_of(boss.get(page_of(made)), '<ul class="messagelist', "</ul>")
    assert said.endswith("which this is. Nothing was added or changed a second time.")
    assert (int(made.tok_per_sec), LogEntry.objects.filter(action_flag=ADDITION).count()) == (100, 1)
    # A form that is opened anew is another one.
    again = opened(boss, url, "measurement_form")
    assert boss.post(url, form | {"desk_once": again["desk_once"]}).status_code == 302
    assert Measurement.objects.count() == 2


def test_the_form_of_somebody_else_is_not_mine(boss: Client) -> None:
    url = reverse("admin:sizing_node_add")
    form = opened(boss, url, "node_form") | {"name": "n1"}
    assert boss.post(url, form).status_code == 302
    other = client_of("carl")
    assert other.post(url, form | {"name": "n2"}).status_code == 302
    assert set(Node.objects.values_list("name", flat=True)) == {"n1", "n2"}


# Deleting


def test_a_deletion_asks_again_where_something_else_would_go(boss: Client) -> None:
    model = builders.model("llama")
    variant = builders.variant(model, "tp1", 1)
    url = reverse("admin:sizing_servedmodel_delete", args=[model.pk])
    form = opened(boss, url)
    builders.measurement(variant, builders.profile("chat"), 1000)
    answer = boss.post(url, form)
    assert (answer.status_code, ServedModel.objects.count(), Measurement.objects.count()) == (200, 1, 1)
    assert "since you looked, this or what goes with it was changed" in answer.content.decode()
    assert not LogEntry.objects.exists()
    assert boss.post(url, filled(answer.content.decode())).status_code == 302
    assert not ServedModel.objects.exists()


def test_an_object_that_was_changed_meanwhile_is_not_deleted_unseen(boss: Client, node: Node) -> None:
    url = reverse("admin:sizing_node_delete", args=[node.pk])
    form = opened(boss, url)
    by_ada(Node, node.pk, cost_per_hour=5)
    assert (boss.post(url, form).status_code, Node.objects.count()) == (200, 1)
    assert (boss.post(url, opened(boss, url)).status_code, Node.objects.count()) == (302, 0)


def test_marked_rows_are_deleted_only_as_they_were_confirmed(boss: Client, node: Node) -> None:
    url = reverse("admin:sizing_node_changelist")
    marked = {"action": "delete_selected", "_selected_action": [str(node.pk)]}
    page = boss.post(url, marked).content.decode()
    by_ada(Node, node.pk, schedulable=False)
    answer = boss.post(url, filled(page))
    assert (answer.status_code, Node.objects.count()) == (200, 1)
    assert "since you looked" in answer.content.decode()
    assert boss.post(url, filled(answer.content.decode())).status_code == 302
    assert not Node.objects.exists()
