"""Who may give, see, store and download result files."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.urls import reverse

from sizing.models import BenchFile, BenchFilePart, BenchImport, BenchProfile, Measurement, Variant
from tests import builders
from tests.admin.cluster import person
from tests.admin.given import (
    ACTS,
    BROKEN,
    FAILS,
    GIVE,
    LIST,
    PASSES,
    do,
    give,
    given,
    page,
    url,
)
from tests.admin.test_measurement_page import words


def test_those_who_may_not_add_measurements_can_change_nothing(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    row = given(boss, llama, chat, PASSES, BROKEN)
    for name, perms, sees in (("looker", ["view_measurement"], 200), ("outsider", [], 403)):
        client = Client()
        client.force_login(person(name, *perms))
        assert client.get(url(row)).status_code == sees
        assert client.get(url(row, "live")).status_code == sees
        assert client.get(GIVE).status_code == 403
        assert give(client, llama, chat, PASSES).status_code == 403
        for act in ACTS:
            assert client.post(url(row, act)).status_code == 403
    body = page(client_of("looker"), row)
    assert "<button" not in body.partition('id="content"')[2]
    row.refresh_from_db()
    assert (row.state, row.leave_out_broken, row.force) == ("done", False, False)
    assert BenchImport.objects.count() == 1
    assert not Measurement.objects.exists()


def client_of(name: str) -> Client:
    from django.contrib.auth.models import User

    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


def test_who_may_only_add_measurements_gives_sees_and_stores(llama: Variant, chat: BenchProfile) -> None:
    client = Client()
    client.force_login(person("adder", "add_measurement"))
    row = given(client, llama, chat, PASSES)
    assert "One replica serves at least 256 tok/s on chat." in words(page(client, row))
    assert client.post(url(row, "store"))["Location"] == LIST
    assert Measurement.objects.get().bench_import == row


def test_nothing_is_taken_without_the_token_of_the_form(llama: Variant, chat: BenchProfile) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("boss", superuser=True))
    assert give(client, llama, chat, PASSES).status_code == 403
    assert not BenchImport.objects.exists()
    client.get(GIVE)
    token = client.cookies["csrftoken"].value
    row = given(client, llama, chat, PASSES, csrfmiddlewaretoken=token)
    for act in ACTS:
        assert client.post(url(row, act)).status_code == 403
        assert client.get(url(row, act)).status_code == 405
    assert not Measurement.objects.exists()
    client.post(url(row, "store"), {"csrfmiddlewaretoken": token})
    assert Measurement.objects.exists()


def test_the_ways_to_the_form_are_shown_to_those_who_may(db: None, boss: Client) -> None:
    link = f'href="{GIVE}"'
    for path in ("/admin/", "/admin/sizing/measurement/", LIST):
        body = boss.get(path).content.decode()
        assert link in body, path
        assert "Import result files" in body, path
    looker = Client()
    looker.force_login(person("looker", "view_measurement"))
    for path in ("/admin/", "/admin/sizing/measurement/", LIST):
        response = looker.get(path)
        assert response.status_code == 200
        assert link not in response.content.decode(), path


def test_report_and_original_files_can_be_downloaded(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    do(boss, given(boss, llama, chat, PASSES, FAILS), "store")
    measurement = Measurement.objects.get()
    body = boss.get(f"/admin/sizing/measurement/{measurement.pk}/change/").content.decode()
    for kind, media_type in (("llm-d", "application/json"), ("csv", "text/csv; charset=utf-8")):
        link = f"/api/v1/measurements/{measurement.pk}/report?as={kind}"
        assert f'href="{link}"' in body
        response = boss.get(link)
        assert (response.status_code, response["Content-Type"]) == (200, media_type)
    first = measurement.files.first()
    assert first is not None
    link = f"/admin/sizing/measurement/{measurement.pk}/files/{first.pk}/"
    assert f'href="{link}"' in body
    response = boss.get(link)
    assert json.loads(response.content) == PASSES[1]
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"] == 'attachment; filename="c8.json"'
    assert response["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("name", ['x".html', "a\r\nSet-Cookie: x=1.json", "..\\..\\etc\\passwd", "日本.json"])
def test_a_kept_files_name_is_no_header_and_no_path(
    name: str, llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    measurement = builders.measurement(llama, chat)
    file = BenchFile.objects.create(
        measurement=measurement,
        position=1,
        name=name,
        size=2,
        sha256="",
    )
    BenchFilePart.objects.create(file=file, position=1, content=b"x\x9c\x8b\x8e\x05\x00\x01\x15\x00\xb9")
    response = boss.get(f"/admin/sizing/measurement/{measurement.pk}/files/{file.pk}/")
    assert response.content == b"[]"
    assert response["Content-Disposition"].startswith("attachment; filename")
    assert "\n" not in response["Content-Disposition"]
    assert "Set-Cookie" not in response.headers


def test_kept_files_are_for_those_who_may_see_their_measurement(
    llama: Variant, chat: BenchProfile, boss: Client, outsider: Client
) -> None:
    row = given(boss, llama, chat, PASSES)
    waiting = BenchFile.objects.get()
    other = builders.measurement(llama, chat)
    assert boss.get(f"/admin/sizing/measurement/{other.pk}/files/{waiting.pk}/").status_code == 404
    do(boss, row, "store")
    link = reverse("admin:sizing_measurement_file", args=[row_measurement(row), waiting.pk])
    assert boss.get(f"/admin/sizing/measurement/{other.pk}/files/{waiting.pk}/").status_code == 404
    assert outsider.get(link).status_code == 403
    looker = Client()
    looker.force_login(person("looker", "view_measurement"))
    assert looker.get(link).status_code == 200
    assert Client().get(link).status_code == 302


def row_measurement(row: BenchImport) -> int | None:
    row.refresh_from_db()
    return row.measurement_id


def test_one_entered_by_hand_has_nothing_to_download(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    measurement = builders.measurement(llama, chat)
    assert "Download" not in words(
        boss.get(f"/admin/sizing/measurement/{measurement.pk}/change/").content.decode()
    )
