"""API tokens on their pages: seen, revoked, and deleted only once they let nobody in."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from sizing.models import ApiToken
from tests.admin.cluster import person


def test_a_token_is_revoked_but_never_made_or_changed_here(boss: Client) -> None:
    token, _text = ApiToken.objects.create(user=User.objects.get(username="boss"), label="ci")
    assert boss.get(reverse("admin:sizing_apitoken_add")).status_code == 403
    body = boss.get(reverse("admin:sizing_apitoken_change", args=[quote(token.pk)])).content.decode()
    assert 'name="_save"' not in body
    assert 'name="action" value="revoke_selected"' in body
    act = {"action": "revoke_selected", "_selected_action": [token.pk]}
    url = reverse("admin:sizing_apitoken_changelist")
    delete = reverse("admin:sizing_apitoken_delete", args=[quote(token.pk)])
    assert boss.post(delete, {"post": "yes"}).status_code == 403
    assert f"ci ({token.token_key}…) of boss" in boss.post(url, act).content.decode()
    assert not ApiToken.objects.exclude(revoked_at=None).exists()
    assert boss.post(url, act | {"confirmed": "yes"}).status_code == 302
    assert ApiToken.objects.exclude(revoked_at=None).exists()
    told = LogEntry.objects.get()
    assert (told.object_repr, told.get_change_message()) == (str(token), "Changed revoked.")
    assert "all selected tokens are revoked" in boss.post(url, act, follow=True).content.decode()
    page = boss.get(reverse("admin:sizing_apitoken_change", args=[quote(token.pk)])).content.decode()
    assert 'value="revoke_selected"' not in page
    assert boss.post(delete, {"post": "yes"}).status_code == 302
    assert not ApiToken.objects.exists()


def test_the_list_of_tokens_says_what_each_may_and_whether_it_lets_anybody_in(boss: Client) -> None:
    user, now = User.objects.get(username="boss"), timezone.now()
    ApiToken.objects.create(user=user, label="works")
    ApiToken.objects.create(user=user, label="board", scope="read", last_used_at=now)
    ApiToken.objects.create(user=user, label="old", expiry=timedelta(seconds=-1))
    ApiToken.objects.create(user=user, label="taken", revoked_at=now)
    ApiToken.objects.create(user=person("gone"), label="lost")
    User.objects.filter(username="gone").update(is_active=False)
    url = reverse("admin:sizing_apitoken_changelist")

    def rows(query: str) -> list[tuple[str, str, str]]:
        listed = boss.get(url + query).context["cl"]
        columns = listed.model_admin
        return [(one.label, columns.may(one), columns.state(one)) for one in listed.result_list]

    revoked = f"revoked {now:%Y-%m-%d %H:%M}"
    assert rows("") == [
        ("lost", "full", "its user is not active"),
        ("taken", "full", revoked),
        ("old", "full", "expired"),
        ("board", "read only", "valid"),
        ("works", "full", "valid"),
    ]
    assert [row[0] for row in rows("?state=valid")] == ["lost", "board", "works"]
    assert rows("?state=expired") == [("old", "full", "expired")]
    assert rows("?state=revoked") == [("taken", "full", revoked)]
    assert rows("?scope__exact=read") == [("board", "read only", "valid")]
    assert f"{now:%Y-%m-%d %H:%M}" in boss.get(url + "?scope__exact=read").content.decode()


def test_who_has_a_token_that_works_is_not_deleted(boss: Client) -> None:
    ada = person("ada")
    ApiToken.objects.create(user=ada, label="ci")
    url = reverse("admin:auth_user_delete", args=[ada.pk])
    assert "Revoke these first." in boss.post(url, {"post": "yes"}).content.decode()
    ApiToken.objects.update(revoked_at=timezone.now())
    assert boss.post(url, {"post": "yes"}).status_code == 302
    assert not ApiToken.objects.exists()
