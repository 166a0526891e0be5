"""Saved targets: how each stands on the board and in its list, and what keeps the board current."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from sizing.admin import words
from sizing.admin.board.live import fleet_key
from sizing.admin.standing import down, verdict
from sizing.models import BenchProfile, Measurement, Node, Refresh, Replica, ServedModel, Target
from sizing.services.wishes import Kind, worst_first
from tests import builders
from tests.admin.cluster import person

LIST = reverse("admin:sizing_target_changelist")


@pytest.fixture
def wishes(db: None, chat: BenchProfile) -> dict[str, Target]:
    """One target of each ending, by model; llama has two of three replicas, and gpu-b room for one more."""
    first, second = builders.node("gpu-a"), builders.node("gpu-b")
    now = timezone.now()
    made = {}
    for name, priority, gpus, rate, wish in (
        ("llama", 100, 4, "1180.5", 3500),
        ("batch", 0, 4, "900", 500),
        ("big", 0, 8, "100", 100),
        ("urgent", 200, 8, "100", 100),
        ("new", 0, 4, "", 100),
    ):
        model = builders.model(name, priority=priority, default_profile=chat)
        variant = builders.variant(model, f"tp{gpus}", gpus)
        if rate:
            builders.measurement(variant, chat, rate, now - timedelta(hours=6), bound="edge")
        if name == "llama":
            builders.replica("llama-0", variant, first, (0, 1, 2, 3))
            builders.replica("llama-1", variant, first, (4, 5, 6, 7))
        if name == "batch":
            builders.replica("batch-0", variant, second, (4, 5, 6, 7))
        made[name] = builders.target(model, wish)
    return made


def live(client: Client, **query: str) -> str:
    """The part of the board that the page asks for again, without the fleet, which it has."""
    response = client.get(reverse("admin:board_live"), {"have": fleet_key(), **query})
    assert response.status_code == 200
    return response.content.decode()


def row(body: str, target: Target) -> str:
    """A target's line as text."""
    line = next(line for line in body.split("<tr") if f'id="target-{target.pk}"' in line)
    return re.sub(r"[ \n]+", " ", unescape(re.sub(r"<[^>]*>", " ", "<tr" + line.partition("</tr>")[0])))


def test_every_target_stands_with_its_answer_the_worst_first(boss: Client, wishes: dict[str, Target]) -> None:
    body = live(boss)
    order = [int(pk) for pk in re.findall(r'id="target-(\d+)"', body)]
    assert order == [wishes[name].pk for name in ("big", "urgent", "new", "llama", "batch")]
    assert "does not fit" in row(body, wishes["big"])
    assert "0 of 1 more replicas fit; 1 more needs 8 free GPUs of one type on one node" in row(
        body, wishes["big"]
    )
    assert "▲ fits by stopping 1 stops 1 of batch" in row(body, wishes["urgent"])
    assert "– not measured new has not been measured" in row(body, wishes["new"])
    said = row(body, wishes["llama"])
    assert "llama tp4 · chat 3,500 3 / 2 1 more ✓ fits" in said
    assert "three replicas hold to 3,541.5 tok/s; you ask 3,500, 98.8\u202f%" in said
    assert "6\u202fh, edge" in said
    assert "✓ served one replica holds to 900 tok/s; you ask 500, 55.5\u202f%" in row(body, wishes["batch"])
    counts = re.sub(r"<[^>]*>", "", body[body.index("targets-summary") : body.index("targets-body")])
    assert "✕ 1 does not fit ▲ 1 fits by stopping others – 1 without an answer ✓ 1 fits ✓ 1 served" in counts
    page = reverse("admin:sizing_servedmodel_target", args=[wishes["llama"].model_id])
    assert f'href="{page}?tokens_per_sec=3500"' in body


def test_the_verdict_is_that_of_the_target_page(wishes: dict[str, Target]) -> None:
    for one in worst_first():
        if one.answer is not None:
            there = words.verdict(one.answer.as_dict(timezone.now()))
            assert (verdict(one).kind, verdict(one).sign) == (there.kind, there.sign)


def test_replicas_of_other_variants_and_planned_utilization_count_in_what_is_held(
    boss: Client, wishes: dict[str, Target], chat: BenchProfile
) -> None:
    llama = wishes["llama"].model
    other = builders.variant(llama, "tp2", 2)
    builders.measurement(other, chat, "700", timezone.now(), bound="floor")
    builders.replica("llama-2", other, Node.objects.get(name="gpu-b"), (0, 1))
    Target.objects.filter(pk=wishes["llama"].pk).update(utilization="0.9", tokens_per_sec="2754.9")
    said = row(live(boss), wishes["llama"])
    # 0.9 × (700 + 2 × 1,180.5)
    assert "three replicas, one of them not tp4, hold to 2,754.9 tok/s; you ask 2,754.9, 100\u202f%" in said
    assert "tp4 · chat · 90\u202f% utilization" in said
    Target.objects.filter(pk=wishes["llama"].pk).update(variant=other, tokens_per_sec=3000)
    # 0.9 × (2 × 1,180.5 + 2 × 700)
    assert "four replicas, two of them not tp2, hold at least 3,384.9 tok/s" in row(
        live(boss), wishes["llama"]
    )


def test_a_stale_measurement_warnings_and_a_running_refresh_are_told(
    boss: Client, wishes: dict[str, Target], chat: BenchProfile
) -> None:
    BenchProfile.objects.update(refresh_every_h=1)
    llama = wishes["llama"].model
    run = Refresh.objects.create(
        variant=llama.variants.get(), profile=chat, trigger="admin", state="running", progress=40
    )
    other = builders.profile("rag")
    Refresh.objects.create(variant=run.variant, profile=other, trigger="admin", state="running", progress=90)
    body = live(boss)
    assert "stale ! 1 warning 40 % 40\u202f%" in row(body, wishes["llama"])
    assert 'title="older than 1 h"' in body
    assert f'href="{reverse("admin:sizing_refresh_change", args=[run.pk])}"' in body
    Refresh.objects.update(state="queued")
    assert "refresh queued" in row(live(boss), wishes["llama"])
    assert "refresh" not in row(live(boss), wishes["big"])
    Refresh.objects.update(state="done")
    assert "refresh" not in row(live(boss), wishes["llama"])


def test_what_is_held_is_told_with_all_its_places_and_never_below_what_is_asked(
    boss: Client, wishes: dict[str, Target]
) -> None:
    rates = ("3541.59", "263.2500", "0.0000015", "1234567.891234567", "9" * 30 + ".9")
    told = ["3,541.59", "263.25", "0.000001", "1,234,567.891234", ",".join(["999"] * 10) + ".9"]
    assert [down(Decimal(rate)) for rate in rates] == told
    Measurement.objects.filter(variant__model=wishes["batch"].model).update(tok_per_sec="123.456789")
    Target.objects.filter(pk=wishes["batch"].pk).update(tokens_per_sec="123.456789")
    said = "one replica holds to 123.456789 tok/s; you ask 123.456789, 100\u202f%"
    assert said in row(live(boss), wishes["batch"])


def test_replicas_that_are_all_of_another_variant_are_said_to_be_none_of_this(
    boss: Client, wishes: dict[str, Target], chat: BenchProfile
) -> None:
    llama = wishes["llama"].model
    other = builders.variant(llama, "tp2", 2)
    builders.measurement(other, chat, "700", timezone.now())
    Target.objects.filter(pk=wishes["llama"].pk).update(variant=other, tokens_per_sec=2000)
    assert "two replicas, none of them tp2, hold to 2,361 tok/s" in row(live(boss), wishes["llama"])
    Replica.objects.get(name="llama-1").delete()
    Target.objects.filter(pk=wishes["llama"].pk).update(tokens_per_sec=1000)
    assert "one replica, not tp2, holds to 1,180.5 tok/s" in row(live(boss), wishes["llama"])


def test_the_targets_of_one_model_can_be_looked_at_alone(boss: Client, wishes: dict[str, Target]) -> None:
    body = live(boss, model="llama", zone="eu-1a")
    assert re.findall(r'id="target-(\d+)"', body) == [str(wishes["llama"].pk)]
    assert '<a href="?have=' not in body
    assert '<a href="?zone=eu-1a">targets of all models</a>' in body


def test_targets_are_paged_in_a_constant_number_of_queries(boss: Client, wishes: dict[str, Target]) -> None:
    live(boss)
    with CaptureQueriesContext(
        connection,
    ) as few:
        live(boss)
    fresh = ServedModel.objects.bulk_create(ServedModel(name=f"other-{i:03}") for i in range(120))
    Target.objects.bulk_create(Target(model=model, tokens_per_sec=1) for model in fresh)
    live(boss)
    with CaptureQueriesContext(connection) as many:
        body = live(boss, targets_page="2", zone="eu-1a")
    assert len(few) == len(many) <= 8
    assert body.count('id="target-') == 50
    assert "page 2 of 3" in body
    assert '<a href="?zone=eu-1a#targets"' in body
    assert '<a href="?zone=eu-1a&amp;targets_page=3#targets"' in body
    assert "</span> 1 does not fit</span>" in body  # of all, not of this page


def test_no_target_says_what_to_do_next(boss: Client) -> None:
    body = live(boss)
    assert "No target is saved yet. Ask what a model would take, then save the question as a target" in body
    assert reverse("admin:sizing_target_add") in body


def test_who_may_not_see_models_or_targets_sees_no_answers(wishes: dict[str, Target]) -> None:
    for name, permissions in (("x", ["view_target", "view_node"]), ("y", ["view_servedmodel", "view_node"])):
        client = Client()
        client.force_login(person(name, *permissions, "view_replica"))
        assert 'id="target' not in live(client)
    nobody = Client()
    nobody.force_login(person("nobody"))
    assert nobody.get(reverse("admin:board_live")).status_code == 403
    assert Client().get(reverse("admin:board_live")).status_code == 302
    reader = Client()
    reader.force_login(person("reader", "view_target"))
    body = reader.get(LIST).content.decode()
    assert "3,500" in body
    assert "does not fit" not in body
    viewer = Client()
    viewer.force_login(person("viewer", "view_target", "view_servedmodel"))
    assert "add one by hand" not in live(viewer)
    assert reverse("admin:sizing_refresh_changelist") not in live(viewer)


def test_a_cordon_is_told_at_the_next_look(boss: Client, wishes: dict[str, Target]) -> None:
    key = fleet_key()
    assert "✓ fits" in row(live(boss), wishes["llama"])
    assert 'data-part="fleet"' not in live(boss)
    Node.objects.filter(name="gpu-b").update(schedulable=False)
    body = live(boss, have=key)
    assert f'data-part="fleet" data-key="{fleet_key()}"' in body
    assert "cordoned" in body
    assert fleet_key() != key
    assert "✕ does not fit" in row(live(boss), wishes["llama"])


def test_the_list_of_targets_has_the_verdicts_in_a_constant_number_of_queries(
    boss: Client, wishes: dict[str, Target]
) -> None:
    boss.get(LIST)
    with CaptureQueriesContext(connection) as few:
        body = boss.get(LIST).content.decode()
    assert "3 / 2" in body
    assert "three replicas hold to 3,541.5 tok/s" in body
    assert "0 of 1 more replicas fit" in body
    assert body.count("desk-badge-unmeasured") == 1
    fresh = ServedModel.objects.bulk_create(ServedModel(name=f"other-{i}") for i in range(20))
    Target.objects.bulk_create(Target(model=model, tokens_per_sec=1) for model in fresh)
    boss.get(LIST)
    with CaptureQueriesContext(connection) as many:
        boss.get(LIST)
    assert len(few) == len(many)


def test_a_profile_that_must_be_chosen_is_no_answer_rather_than_not_measured(
    wishes: dict[str, Target], chat: BenchProfile
) -> None:
    llama = wishes["llama"].model
    builders.measurement(llama.variants.get(), builders.profile("rag"), 500, datetime(2026, 1, 1, tzinfo=UTC))
    ServedModel.objects.update(default_profile=None)
    one = next(one for one in worst_first() if one.target.model.name == "llama")
    assert (one.kind, verdict(one).text) == (Kind.UNMEASURED, "no answer")
    assert one.refusal is not None
    assert one.refusal.code == "profile_required"


def test_of_a_large_fleet_the_verdicts_are_told_without_whom_they_stop(
    boss: Client, wishes: dict[str, Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = [(one.target.pk, one.kind) for one in worst_first()]
    monkeypatch.setattr("sizing.services.wishes.REPLICAS_SEARCHED", 2)
    Node.objects.filter(name="gpu-a").update(seen_at=timezone.now())  # so that all are asked again
    body = live(boss)
    assert "▲ fits by stopping others its page tells who would stop" in row(body, wishes["urgent"])
    assert [(one.target.pk, one.kind) for one in worst_first()] == kinds
    assert all("reach" not in vars(one.answer) for one in worst_first() if one.answer is not None)
