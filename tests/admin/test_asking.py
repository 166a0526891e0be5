"""Asking for a measurement: the button on a model's page, the action of its list, the Target page."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from sizing.models import Refresh, Variant
from tests import builders
from tests.admin import sweeps
from tests.admin.cluster import person
from tests.admin.test_every_page import HOSTILE
from tests.admin.test_measurement_page import llama, words
from tests.admin.test_model_page import history, measurable, page

__all__ = ["llama"]


def refresh_url(variant: Variant) -> str:
    return reverse("admin:sizing_servedmodel_refresh", args=[variant.model_id])


def test_the_button_queues_a_run_and_leads_to_it(llama: Variant, boss: Client) -> None:
    measurable(llama)
    profile = sweeps.profile()
    builders.measurement(llama, profile)
    assert f'action="{refresh_url(llama)}"' in page(boss, llama)
    response = boss.post(refresh_url(llama), {"variant": "tp4", "profile": "chat"})
    run = Refresh.objects.get()
    assert response["Location"] == reverse("admin:sizing_refresh_change", args=[run.pk])
    assert (run.variant, run.profile, run.state, run.trigger) == (llama, profile, "queued", "admin")
    assert str(run.requested_by) == "boss"
    body = page(boss, llama)
    assert f'href="{reverse("admin:sizing_refresh_change", args=[run.pk])}"' in body
    assert f"{reverse('admin:sizing_refresh_live_rows')}?pk={run.pk}" in body
    assert f'action="{refresh_url(llama)}"' not in body


def test_what_is_left_open_the_desk_chooses(llama: Variant, boss: Client) -> None:
    llama.model.default_profile = sweeps.profile()
    llama.model.save()
    second = builders.variant(llama.model, "tp8", 8)
    measurable(second)
    boss.post(refresh_url(llama), {"variant": "", "profile": ""})
    run = Refresh.objects.get()
    assert (run.variant, run.profile.name) == (second, "chat")


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ({"profile": "nope"}, "Not measured: no profile &quot;nope&quot;; there are chat."),
        ({"profile": "chat", "variant": "tp9"}, "no variant &quot;tp9&quot;; there are tp4."),
        ({"profile": "chat"}, "Not measured: llama (tp4) has no replica to measure."),
    ],
)
def test_why_nothing_is_measured_is_said(
    llama: Variant, boss: Client, asked: dict[str, str], refusal: str
) -> None:
    sweeps.profile()
    assert refusal in boss.post(refresh_url(llama), asked, follow=True).content.decode()
    assert not Refresh.objects.exists()


def test_one_that_is_active_already_is_named(llama: Variant, boss: Client) -> None:
    measurable(llama)
    run = sweeps.refresh(llama, sweeps.profile(), "running")
    body = boss.post(refresh_url(llama), {"profile": "chat"}, follow=True).content.decode()
    assert f"Not measured: refresh {run.pk} is running for llama (tp4) on chat already." in body
    assert Refresh.objects.count() == 1


def test_asking_needs_its_permission_and_post(llama: Variant, boss: Client, viewer: Client) -> None:
    measurable(llama)
    builders.measurement(llama, sweeps.profile())
    assert f'action="{refresh_url(llama)}"' not in page(viewer, llama)
    assert viewer.post(refresh_url(llama), {"profile": "chat"}).status_code == 403
    blind = Client()
    blind.force_login(person("blind", "add_refresh"))
    assert blind.post(refresh_url(llama), {"profile": "chat"}).status_code == 403
    assert Client().post(refresh_url(llama), {"profile": "chat"}).status_code == 302
    assert boss.get(refresh_url(llama)).status_code == 405
    assert not Refresh.objects.exists()
    unknown = reverse("admin:sizing_servedmodel_refresh", args=[999])
    assert boss.post(unknown)["Location"] == reverse("admin:index")


def test_who_may_not_see_runs_stays_on_the_models_page(llama: Variant) -> None:
    measurable(llama)
    sweeps.profile()
    client = Client()
    client.force_login(person("asker", "add_refresh", "view_servedmodel"))
    response = client.post(refresh_url(llama), {"profile": "chat"})
    assert response["Location"] == reverse("admin:sizing_servedmodel_change", args=[llama.model_id])
    assert (
        f"Refresh {Refresh.objects.get().pk} is queued." in client.get(response["Location"]).content.decode()
    )


def select(client: Client, *variants: Variant, **more: str) -> Any:
    data = {"action": "refresh_now", "_selected_action": [str(v.model_id) for v in variants], **more}
    return client.post(reverse("admin:sizing_servedmodel_changelist"), data, follow=True)


def test_models_are_refreshed_after_a_confirmation(llama: Variant, boss: Client) -> None:
    chat = sweeps.profile()
    measurable(llama)
    others = [
        builders.variant(builders.model(name, default_profile=default))
        for name, default in (("busy", chat), ("idle", chat), ("new", None))
    ]
    measurable(others[0], "busy-0")
    measurable(others[0], "busy-1")
    builders.measurement(llama, chat)  # its only measured profile
    said = words(select(boss, llama, *others).content.decode())
    assert "Take 2 measurements anew?" in said
    for line in (
        "llama (tp4) on chat: measured on llama-0",
        "busy (tp4) on chat: measured on one of busy-0 and busy-1",
        "idle (tp4) on chat: left out, idle (tp4) has no replica to measure",
        "new: left out, it has no default profile; give it one",
    ):
        assert line in said
    assert not Refresh.objects.exists()
    body = select(boss, llama, *others, confirmed="yes").content.decode()
    assert "2 refreshes are queued; see Refreshes." in body
    assert "Not measured" not in body
    assert {run.variant for run in Refresh.objects.all()} == {llama, others[0]}
    body = select(boss, llama).content.decode()
    assert "Not measured: llama (tp4) on chat: refresh" in body
    assert Refresh.objects.count() == 2


def test_those_who_may_not_measure_can_do_no_action(llama: Variant, viewer: Client) -> None:
    measurable(llama)
    builders.measurement(llama, sweeps.profile())
    assert "refresh_now" not in viewer.get(reverse("admin:sizing_servedmodel_changelist")).content.decode()
    select(viewer, llama, confirmed="yes")
    assert not Refresh.objects.exists()


def test_confirming_many_models_takes_as_many_queries_as_few(llama: Variant, boss: Client) -> None:
    chat = sweeps.profile()
    variants = [builders.variant(builders.model(f"m{i}", default_profile=chat)) for i in range(30)]
    for variant in variants:
        measurable(variant, f"r-{variant.model.name}")
    select(boss, *variants[:3])
    counts = []
    for number in (3, 30):
        with CaptureQueriesContext(connection) as queries:
            assert f"Take {number} measurements anew?" in select(boss, *variants[:number]).content.decode()
        counts.append(len(queries))
    assert counts[0] == counts[1]


# The Target page


def ask(client: Client, variant: Variant, **question: str) -> str:
    url = reverse("admin:sizing_servedmodel_target", args=[variant.model_id])
    return client.get(url, {"tokens_per_sec": "900", **question}).content.decode()


@pytest.mark.parametrize(
    ("fields", "offered"),
    [
        ({"bound": "floor", "at": timezone.now()}, True),
        ({"bound": "edge", "at": timezone.now()}, False),
        ({"bound": "edge"}, True),
    ],
)
def test_a_stale_figure_or_a_floor_can_be_measured_again_from_its_answer(
    llama: Variant, boss: Client, fields: dict[str, Any], offered: bool
) -> None:
    measurable(llama)
    builders.measurement(llama, sweeps.profile(refresh_every_h=24), 100, **fields)
    body = ask(boss, llama)
    assert (f'action="{refresh_url(llama)}"' in body) is offered
    assert ('name="variant" value="tp4"><input type="hidden" name="profile" value="chat"' in body) is offered


def test_what_is_not_measured_can_be_measured_from_there(
    llama: Variant, boss: Client, viewer: Client
) -> None:
    llama.model.default_profile = sweeps.profile()
    llama.model.save()
    assert "It cannot be measured now: llama (tp4) has no replica to measure." in ask(boss, llama)
    measurable(llama)
    assert f'action="{refresh_url(llama)}"' in ask(boss, llama)
    assert f'action="{refresh_url(llama)}"' not in ask(viewer, llama)
    run = sweeps.refresh(llama, llama.model.default_profile)
    assert f"Refresh {run.pk} is queued" in ask(boss, llama)


def test_names_with_markup_are_escaped(boss: Client) -> None:
    variant = builders.variant(builders.model(f"m{HOSTILE}"), f"v{HOSTILE}")
    profile = sweeps.profile(f"p{HOSTILE}")
    measurable(variant, f"r{HOSTILE}")
    history(variant, profile, 100, 100)
    sweeps.refresh(variant, profile, "failed", error=HOSTILE, finished_at=timezone.now())
    for body in (
        page(boss, variant),
        select(boss, variant).content.decode(),
        boss.post(refresh_url(variant), {"profile": HOSTILE}, follow=True).content.decode(),
    ):
        assert "alert(1)" in body
        assert HOSTILE not in body
