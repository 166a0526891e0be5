"""Nobody makes anybody mightier than they are themselves, and who is in the history stays."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from sizing.models import history
from tests.admin.cluster import person


@pytest.fixture
def manager(groups: None) -> Client:
    """An administrator who is no superuser."""
    client = Client()
    user = person("manager")
    user.groups.add(Group.objects.get(name="administrator"))
    client.force_login(user)
    return client


def save_user(client: Client, user: User, **fields: Any) -> Any:
    """The user's form, posted with what it has and these fields."""
    joined = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    own: dict[str, Any] = {"username": user.username, "is_active": "on", "is_staff": "on", **joined}
    own["groups"] = list(user.groups.values_list("pk", flat=True))
    return client.post(reverse("admin:auth_user_change", args=[user.pk]), own | fields)


def test_an_administrator_makes_no_superuser(manager: Client) -> None:
    for name in ("manager", "ada"):
        user = User.objects.filter(username=name).first() or person(name)
        assert save_user(manager, user, is_superuser="on", first_name="A").status_code == 302
        user.refresh_from_db()
        assert (user.first_name, user.is_superuser) == ("A", False)


def test_an_administrator_gives_no_permission_that_they_lack(manager: Client) -> None:
    ada = person("ada")
    lacking = Permission.objects.get(codename="delete_logentry")
    having = Permission.objects.get(codename="view_node")
    mighty = Group.objects.create(name="mighty")
    mighty.permissions.add(lacking)
    viewers = Group.objects.get(name="viewer")
    for refused in ({"user_permissions": [lacking.pk]}, {"groups": [mighty.pk]}):
        answer = save_user(manager, ada, **refused)
        assert answer.status_code == 200
        assert "is not one of the available choices" in answer.content.decode()
    assert save_user(manager, ada, user_permissions=[having.pk], groups=[viewers.pk]).status_code == 302
    assert ada.user_permissions.get() == having
    add = reverse("admin:auth_group_add")
    assert manager.post(add, {"name": "new", "permissions": [lacking.pk]}).status_code == 200
    assert not Group.objects.filter(name="new").exists()
    assert manager.post(add, {"name": "new", "permissions": [having.pk]}).status_code == 302
    assert (
        manager.post(reverse("admin:auth_group_change", args=[mighty.pk]), {"name": "x"}).status_code == 403
    )
    assert manager.post(reverse("admin:auth_group_delete", args=[mighty.pk])).status_code == 403


def test_an_administrator_takes_over_nobody_who_may_more(manager: Client) -> None:
    boss = person("chief", superuser=True)
    retired = person("retired", "delete_logentry")
    retired.is_active = False
    retired.save()
    before = User.objects.order_by("pk").values_list("password", "is_active", "is_superuser")
    stood = list(before)
    for user in (boss, retired):
        assert save_user(manager, user, password="x").status_code == 403
        for page in ("auth_user_delete", "auth_user_password_change"):
            password = {"password1": "Long-enough-1", "password2": "Long-enough-1", "usable_password": "true"}
            url = reverse(f"admin:{page}", args=[user.pk])
            assert manager.post(url, {"post": "yes", **password}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [boss.pk], "post": "yes"}
    manager.post(reverse("admin:auth_user_changelist"), chosen)
    assert list(before.all()) == stood


def test_who_is_in_the_history_stays(boss: Client) -> None:
    ada = person("ada")
    url = reverse("admin:auth_user_delete", args=[ada.pk])
    LogEntry.objects.log_actions(ada.pk, [ada], 2, "x", single_object=True)
    page = boss.post(url, {"post": "yes"}).content.decode()
    assert "The history tells what ada did, which would be lost." in page
    LogEntry.objects.all().delete()
    assert boss.post(url, {"post": "yes"}).status_code == 302
    assert not User.objects.filter(username="ada").exists()


def test_nobody_changes_the_account_of_the_desk_itself(boss: Client, manager: Client) -> None:
    desk = history.the_desk()
    before = User.objects.filter(pk=desk.pk).values().get()
    for client in (boss, manager):
        assert save_user(client, desk, username="x").status_code == 403
        new = {"password1": "Long-enough-9", "password2": "Long-enough-9", "usable_password": "true"}
        url = reverse("admin:auth_user_password_change", args=[desk.pk])
        assert client.post(url, new).status_code == 403
        assert (
            client.post(reverse("admin:auth_user_delete", args=[desk.pk]), {"post": "y"}).status_code == 403
        )
        selected = {"action": "delete_selected", "_selected_action": [desk.pk], "post": "yes"}
        client.post(reverse("admin:auth_user_changelist"), selected)
        assert User.objects.filter(pk=desk.pk).values().get() == before


def test_a_new_name_is_told_with_the_old_one(manager: Client) -> None:
    ada = person("ada")
    assert save_user(manager, ada, username="eve").status_code == 302
    told = LogEntry.objects.get(object_id=str(ada.pk)).get_change_message()
    assert "username ada → eve" in told
