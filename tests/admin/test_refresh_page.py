"""The page of a run: how far it is, what it found, canceling, trying again, and following it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from sizing.domain.levels import judge
from sizing.models import Refresh, Variant
from tests import builders
from tests.admin import sweeps
from tests.admin.cluster import person
from tests.admin.test_every_page import HOSTILE
from tests.admin.test_measurement_page import llama, words

__all__ = ["llama"]

LIVE = {
    "level": 3,
    "most": 9,
    "load": 8.0,
    "arrival": "concurrency",
    "purpose": "narrowing",
    "seconds": 4.2,
    "sent": 40,
    "completed": 38,
    "failed": 1,
    "tok_per_sec": 123.4,
}


def url(name: str, run: Refresh) -> str:
    return reverse(f"admin:sizing_refresh_{name}", args=[run.pk])


def get(client: Client, name: str, run: Refresh) -> str:
    response = client.get(url(name, run))
    assert response.status_code == 200
    return response.content.decode()


def ago(seconds: int) -> datetime:
    return timezone.now() - timedelta(seconds=seconds)


def running(variant: Variant, **fields: Any) -> Refresh:
    known: dict[str, Any] = {"started_at": ago(3 * 3600), "progress": 22, "live": LIVE, "message": "level 3"}
    return sweeps.refresh(variant, sweeps.profile(), "running", **(known | fields))


def measurable(variant: Variant) -> None:
    builders.replica("llama-0", variant, benchable=True, state="ready", endpoint="http://10.0.0.7/v1")


@pytest.mark.parametrize("name", ["change", "live"])
def test_a_run_says_its_level_its_load_and_its_numbers_so_far(
    llama: Variant, boss: Client, name: str
) -> None:
    body = get(boss, name, running(llama))
    assert "Level 3 of about 9: 8 streams, narrowing." in body
    assert (
        '<progress class="desk-progress" max="100" value="22" aria-label="Progress">22 %</progress>' in body
    )
    said = words(body)
    assert "22 %, 3 h so far" in said
    assert "tok/s so far 123.4 requests sent 40 answered 38 failed 1 in this level 4 s" in said


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"state": "queued"}, "a worker takes it up as soon as one is free."),
        (
            {"state": "queued", "message": "waits: refresh 7 measures on gpu-a1"},
            ": refresh 7 measures on gpu-a1.",
        ),
        ({"state": "running", "live": {}}, "Preparing: beginning."),
        (
            {"state": "running", "live": {"load": None, "purpose": "one request alone"}},
            "Preparing: one request alone.",
        ),
        (
            {"state": "running", "live": LIVE, "cancel_requested": True},
            "Stopping: the running level is left out.",
        ),
        ({"state": "done", "message": "200 tok/s; 240 failed"}, "Done in 60\u202fs: 200 tok/s; 240 failed."),
        ({"state": "failed", "error": "gone"}, "Failed after 60\u202fs."),
        ({"state": "cancelled", "started_at": None}, "Cancelled before it began."),
        ({"state": "cancelled"}, "Cancelled after 60\u202fs."),
    ],
)
def test_each_state_is_one_sentence(
    llama: Variant, boss: Client, fields: dict[str, Any], sentence: str
) -> None:
    began = ago(60)
    times = {"started_at": began, "finished_at": began + timedelta(seconds=60)}
    run = sweeps.refresh(llama, sweeps.profile(), **(times | fields))
    found = re.search(r'data-part="sentence">([^<]*)<', get(boss, "change", run))
    assert found is not None
    assert found[1].endswith(sentence)


def test_the_finished_levels_are_there_while_it_runs_and_after_it_was_cancelled(
    llama: Variant, boss: Client
) -> None:
    run = running(llama)
    sweeps.keep(run, sweeps.sweep())
    body = get(boss, "change", run)
    assert "the figure so far" in body
    assert body.count('role="img"') == 2
    Refresh.objects.update(state="cancelled", finished_at=timezone.now())
    body = get(boss, "change", run)
    assert "; 3 finished levels below." in body
    assert body.count('role="img"') == 2


def test_a_run_that_is_done_leads_to_its_measurement_and_shows_its_levels(
    llama: Variant, boss: Client
) -> None:
    run = sweeps.refresh(llama, sweeps.profile(), "done", started_at=ago(60), finished_at=ago(0))
    row = sweeps.measured(llama, run.profile, refresh=run)
    body = get(boss, "change", run)
    assert f'<a href="{reverse("admin:sizing_measurement_change", args=[row.pk])}">200 tok/s</a>' in body
    assert body.count('role="img"') == 2
    assert "gives the figure" in body


def test_a_failure_is_one_line_and_the_last_measurement_stands_beside_it(
    llama: Variant, boss: Client
) -> None:
    run = sweeps.refresh(
        llama,
        sweeps.profile(),
        "failed",
        started_at=ago(60),
        finished_at=ago(0),
        error="the replica went away\nTraceback",
    )
    sweeps.measured(llama, run.profile)
    body = get(boss, "change", run)
    assert '<p class="desk-problem">the replica went away</p>' in body
    assert "Traceback" not in body
    assert "The last measurement still counts: 200 tok/s of 2026-01-01 00:00 UTC ." in words(body)


def test_only_a_page_of_an_active_run_follows_it(llama: Variant, boss: Client) -> None:
    run = running(llama)
    body = get(boss, "change", run)
    assert f'data-live="{url("live", run)}"' in body
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in body
    assert 'data-active="yes"' in get(boss, "live", run)
    Refresh.objects.update(state="done", finished_at=timezone.now())
    body = get(boss, "change", run)
    assert "data-live" not in body
    assert "http-equiv" not in body
    assert "live.js" not in body
    assert 'data-active="no"' in get(boss, "live", run)


def test_what_is_followed_is_the_pages_own_words_and_never_kept(llama: Variant, boss: Client) -> None:
    run = running(llama)
    response = boss.get(url("live", run))
    assert "no-store" in response["Cache-Control"]
    parts = re.findall(r'data-part="(\w+)"', response.content.decode())
    assert parts == ["state", "sentence", "bar", "numbers", "ending", "facts", "levels"]
    assert parts == re.findall(r'data-part="(\w+)"', get(boss, "change", run))


def test_following_thirty_levels_takes_as_many_queries_as_three(llama: Variant, boss: Client) -> None:
    run = running(llama)
    sweeps.keep(run, sweeps.sweep())
    get(boss, "live", run)
    with CaptureQueriesContext(connection) as few:
        get(boss, "live", run)
    sweeps.keep(run, [judge(sweeps.level(load, 10, 10), sweeps.SLO) for load in range(10, 37)])
    with CaptureQueriesContext(connection) as many:
        get(boss, "live", run)
    assert len(many) == len(few) <= 8


def test_the_list_follows_its_active_runs_and_no_others(llama: Variant, boss: Client) -> None:
    run = running(llama)
    sweeps.refresh(llama, run.profile, "done", message="200 tok/s")
    listed = boss.get(reverse("admin:sizing_refresh_changelist")).content.decode()
    address = f"{reverse('admin:sizing_refresh_live_rows')}?pk={run.pk}"
    assert f'data-live="{address}"' in listed
    body = boss.get(address).content.decode()
    assert 'data-active="yes"' in body
    for name in ("state", "progress", "finished", "outcome"):
        (cell,) = re.findall(rf'<span data-part="refresh-{run.pk}-{name}">.*?</span>', body)
        assert cell in listed
    Refresh.objects.update(state="done")
    assert 'data-active="no"' in boss.get(address).content.decode()
    assert "data-live" not in boss.get(reverse("admin:sizing_refresh_changelist")).content.decode()


@pytest.mark.parametrize("pk", ["x", "-1", "9" * 30, "999"])
def test_rows_that_there_are_not_are_left_out(llama: Variant, boss: Client, pk: str) -> None:
    response = boss.get(reverse("admin:sizing_refresh_live_rows"), {"pk": pk})
    assert response.status_code == 200
    assert "data-part" not in response.content.decode()


def test_a_run_that_is_gone_is_not_found(llama: Variant, boss: Client) -> None:
    for name in ("live", "cancel", "retry"):
        address = reverse(f"admin:sizing_refresh_{name}", args=[999])
        assert (boss.get if name == "live" else boss.post)(address).status_code == 404


def test_following_needs_the_permission_to_view(llama: Variant, outsider: Client, viewer: Client) -> None:
    run = running(llama)
    rows = reverse("admin:sizing_refresh_live_rows")
    for address in (url("live", run), rows):
        assert outsider.get(address, {"pk": run.pk}).status_code == 403
        assert Client().get(address, {"pk": run.pk}).status_code == 302
        assert viewer.get(address, {"pk": run.pk}).status_code == 200


def test_a_run_is_tried_again_by_post(llama: Variant, boss: Client) -> None:
    measurable(llama)
    run = sweeps.refresh(llama, sweeps.profile(), "failed", options={"seed": 4})
    assert f'action="{url("retry", run)}"' in get(boss, "change", run)
    assert boss.get(url("retry", run)).status_code == 405
    response = boss.post(url("retry", run))
    new = Refresh.objects.get(state="queued")
    assert response["Location"] == url("change", new)
    assert (new.variant, new.profile, new.options, new.trigger) == (llama, run.profile, {"seed": 4}, "admin")
    assert str(new.requested_by) == "boss"
    assert LogEntry.objects.filter(object_id=new.pk).count() == 1


def test_why_a_run_cannot_be_tried_again_is_said(llama: Variant, boss: Client) -> None:
    run = sweeps.refresh(llama, sweeps.profile(), "failed")
    body = boss.post(url("retry", run), follow=True).content.decode()
    assert "Not measured: llama (tp4) has no replica to measure." in body
    assert Refresh.objects.count() == 1


def test_trying_again_needs_the_permission_to_add(llama: Variant, viewer: Client) -> None:
    measurable(llama)
    run = sweeps.refresh(llama, sweeps.profile(), "failed")
    assert url("retry", run) not in get(viewer, "change", run)
    assert viewer.post(url("retry", run)).status_code == 403
    assert Refresh.objects.count() == 1


def test_an_active_run_offers_cancel_and_one_that_is_over_trying_again(llama: Variant, boss: Client) -> None:
    run = running(llama)
    body = get(boss, "change", run)
    assert (url("cancel", run) in body, url("retry", run) in body) == (True, False)
    boss.post(url("cancel", run))
    run.refresh_from_db()
    assert (run.state, run.cancel_requested) == ("running", True)
    body = get(boss, "change", run)
    assert (url("cancel", run) in body, url("retry", run) in body) == (False, False)
    Refresh.objects.update(state="cancelled")
    body = get(boss, "change", run)
    assert (url("cancel", run) in body, url("retry", run) in body) == (False, True)
    response = boss.post(url("cancel", run), follow=True)
    assert f"Refresh {run.pk} is over already; nothing was changed." in response.content.decode()


def test_canceling_needs_the_permission_to_change(llama: Variant, viewer: Client) -> None:
    run = running(llama)
    assert viewer.post(url("cancel", run)).status_code == 403
    run.refresh_from_db()
    assert not run.cancel_requested


def test_who_may_only_cancel_needs_no_more(llama: Variant) -> None:
    run = running(llama)
    client = Client()
    client.force_login(person("stopper", "change_refresh"))
    assert client.post(url("cancel", run)).status_code == 302
    run.refresh_from_db()
    assert run.cancel_requested


def test_text_with_markup_is_escaped(llama: Variant, boss: Client) -> None:
    run = running(llama, message=HOSTILE, error=HOSTILE, live=LIVE | {"purpose": HOSTILE, "sent": HOSTILE})
    for name in ("change", "live"):
        body = get(boss, name, run)
        assert "alert(1)" in body
        assert HOSTILE not in body
    rows = boss.get(reverse("admin:sizing_refresh_live_rows"), {"pk": run.pk}).content.decode()
    assert "alert(1)" in rows
    assert HOSTILE not in rows


def test_marked_runs_are_cancelled_after_a_page_that_names_them(llama: Variant, boss: Client) -> None:
    run, over = running(llama), sweeps.refresh(llama, sweeps.profile("rag"), "done")
    queued = sweeps.refresh(llama, sweeps.profile("batch"), "queued")
    address = reverse("admin:sizing_refresh_changelist")
    data = {"action": "cancel_runs", "_selected_action": [run.pk, over.pk, queued.pk]}
    asked = words(boss.post(address, data).content.decode())
    assert "Cancel 2 refreshes?" in asked
    assert f"#{run.pk} llama (tp4) on chat: running → cancelled" in asked
    assert f"#{over.pk} " not in asked
    assert not Refresh.objects.filter(cancel_requested=True).exists()
    done = boss.post(address, data | {"confirmed": "yes"}, follow=True).content.decode()
    assert "2 of 2 refreshes are asked to stop; finished levels are kept." in done
    assert dict(Refresh.objects.values_list("pk", "state")) == {
        run.pk: "running",
        over.pk: "done",
        queued.pk: "cancelled",
    }
    run.refresh_from_db()
    assert run.cancel_requested
    assert set(LogEntry.objects.values_list("object_id", flat=True)) == {str(run.pk), str(queued.pk)}
    assert "Nothing to cancel" in boss.post(address, data, follow=True).content.decode()


def test_who_may_only_look_cancels_nothing_from_the_list(llama: Variant, viewer: Client) -> None:
    run = running(llama)
    address = reverse("admin:sizing_refresh_changelist")
    assert "cancel_runs" not in viewer.get(address).content.decode()
    viewer.post(address, {"action": "cancel_runs", "_selected_action": [run.pk], "confirmed": "yes"})
    run.refresh_from_db()
    assert not run.cancel_requested
