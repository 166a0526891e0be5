"""Two measurements side by side: which serves more, at which loads, and what else differs."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from sizing.domain.levels import POISSON, judge
from sizing.models import BenchLevel, BenchProfile, Measurement, Variant
from tests import builders
from tests.admin import sweeps
from tests.admin.cluster import person
from tests.admin.test_every_page import HOSTILE
from tests.admin.test_measurement_page import words

LIST = "/admin/sizing/measurement/"
NOW = timezone.now()


def compare(client: Client, a: Any, b: Any, status: int = 200) -> str:
    response = client.get(f"{LIST}compare/", {"a": getattr(a, "pk", a), "b": getattr(b, "pk", b)})
    assert response.status_code == status
    return response.content.decode()


def rows(body: str, table: str) -> list[str]:
    """The text of each line of a table's body, by the table's name."""
    found = re.search(rf'aria-label="{table}">.*?<tbody>(.*?)</tbody>', body, re.DOTALL)
    assert found is not None
    return [words(row) for row in re.findall(r"<tr>(.*?)</tr>", found[1], re.DOTALL)]


def faster(of: Variant, on: BenchProfile, **fields: Any) -> Measurement:
    """120 tok/s at 2 streams and 225 at 4 pass, 300 at 16 fails; a newer engine."""
    known = {"engine": "vLLM 0.12.0", "at": NOW, "bracket": "225 tok/s; the next level tried, 300, failed"}
    row = sweeps.measured(of, on, "225", **(known | fields))
    row.levels.all().delete()
    levels = [(2, 120, 20), (4, 225, 44), (16, 300, 150)]
    sweeps.keep(row, [judge(sweeps.level(*one), sweeps.SLO) for one in levels])
    return row


def test_two_measurements_stand_side_by_side_with_what_differs(llama: Variant, boss: Client) -> None:
    chat = sweeps.profile()
    a, b = sweeps.measured(llama, chat), faster(llama, chat)
    body = compare(boss, a, b)
    assert "B serves 225 tok/s, 12.5 % more than A with 200." in words(body)
    assert rows(body, "Figures side by side") == [
        "tok/s at the SLO 200 225 +25 (+12.5 %)",
        "bound edge edge",
        "reached at 4 streams 4 streams",
        "requests/s 6.25 7.031 +0.78 (+12.5 %)",
        "TTFT p95 (ms) 200 200 same",
        "TPOT p95 (ms) 40 44 +4 (+10 %)",
        "end to end p95 (ms) 2,000 2,000 same",
        "failed requests 0 0 same",
    ]
    assert rows(body, "What differs") == ["engine vLLM 0.11.2 vLLM 0.12.0"]
    assert rows(body, "Levels side by side") == [
        "2 streams 100 pass 120 pass +20 (+20 %)",
        "4 streams 200 pass 225 pass +25 (+12.5 %)",
        "8 streams 240 fail –",
        "16 streams – 300 fail",
    ]
    assert "They answer different questions" not in body
    assert "by which measurements of one replica differ" not in body
    assert f'href="{LIST}compare/?a={b.pk}&amp;b={a.pk}"' in body
    assert f'<option value="{a.pk}" selected>2026-01-01 00:00 · llama (tp4) on chat · 200 tok/s' in body


def test_both_curves_are_in_one_chart_and_told_apart_without_color(llama: Variant, boss: Client) -> None:
    chat = sweeps.profile()
    body = compare(boss, sweeps.measured(llama, chat), faster(llama, chat))
    first, second = re.findall(r'<svg class="desk-chart".*?</svg>', body, re.DOTALL)
    # 400 px from 0 to 20 streams, 220 px from 0 to 300 tok/s.
    assert '<polyline points="100,186.7 140,113.3 220,84" class="desk-chart-before"></polyline>' in first
    assert '<polyline points="100,172 140,95 380,40" class="desk-chart-after"></polyline>' in first
    assert first.count('class="desk-chart-ring"') == 2
    # The words of the higher figure stand above its point, those of the lower one below.
    said = re.findall(r'y="([^"]*)" class="desk-chart-figure"[^>]*>([^<]*)<', first)
    assert said == [("132.3", "A 200"), ("85", "B 225")]
    assert "<title>4 streams: B, 225 tok/s, pass</title>" in first
    # The worst latency: 44 of 50 ms is 88 %, and three times the limit lies beyond the plot.
    assert "<title>4 streams: B, 88\u202f% of its limit, pass</title>" in second
    assert second.count('class="desk-chart-beyond"') == 2


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"workload": {"input_tokens": 1024, "output_tokens": 512, "arrival": "concurrency"}}, "the tokens"),
        ({"workload": {"input_tokens": 1024, "output_tokens": 256, "arrival": POISSON}}, "the arrival"),
        ({"profile": "rag"}, "the profile differs"),
        ({"bound": "floor"}, "No load tried on B failed the SLO"),
    ],
)
def test_what_keeps_two_figures_from_being_compared_is_said(
    llama: Variant, boss: Client, fields: dict[str, Any], said: str
) -> None:
    chat = sweeps.profile()
    other = fields.pop("profile", None)
    b = sweeps.measured(llama, sweeps.profile(other) if other else chat, **fields)
    body = words(compare(boss, sweeps.measured(llama, chat), b))
    assert said in body
    assert ("different questions" in body) == ("bound" not in fields)


def test_a_small_difference_is_called_one(llama: Variant, boss: Client) -> None:
    chat = sweeps.profile()
    a, b = builders.measurement(llama, chat, "200"), builders.measurement(llama, chat, "180")
    body = words(compare(boss, a, b))
    assert "B serves 180 tok/s, 10 % less than A with 200. That is within the 10 %" in body
    assert "No curve: the levels of A and B are not kept." in body
    assert "Nothing that is known of them." in body
    Measurement.objects.filter(pk=b.pk).update(tok_per_sec="179")
    assert "That is within" not in words(compare(boss, a, b))
    Measurement.objects.filter(pk=b.pk).update(tok_per_sec="200.02")
    assert "B serves 200.02 tok/s, less than 0.1 % more than A with 200." in words(compare(boss, a, b))
    Measurement.objects.filter(pk=b.pk).update(tok_per_sec="200")
    assert "A and B serve the same: 200 tok/s." in words(compare(boss, a, b))
    Measurement.objects.filter(pk=b.pk).update(slo_met=False)
    body = compare(boss, a, b)
    assert "B does not meet its SLO, A serves 200 tok/s." in words(body)
    assert rows(body, "Figures side by side")[0] == "tok/s at the SLO 200 –"


def test_figures_that_differ_look_different_and_add_up(llama: Variant, boss: Client) -> None:
    chat = sweeps.profile()
    a, b = builders.measurement(llama, chat, "200"), builders.measurement(llama, chat, "180")
    for before, after, sentence, line in (
        ("99.96", "100.04", "B serves 100.04 tok/s, 0.1 % more than A with 99.96.", "+0.08 (+0.1 %)"),
        ("1000", "0.5", "B serves 0.5 tok/s, 99.95 % less than A with 1,000.", "−999.5 (−99.95 %)"),
        (
            "2000",
            "0.05",
            "B serves 0.05 tok/s, 99.998 % less than A with 2,000.",
            "−1,999.95 (−99.998 %)",
        ),
        (
            "123.456789",
            "123.456788",
            "B serves 123.456788 tok/s, less than 0.1 % less than A with 123.456789.",
            "−0.000001 (−0.0000008 %)",
        ),
    ):
        for row, rate in ((a, before), (b, after)):
            Measurement.objects.filter(pk=row.pk).update(tok_per_sec=rate)
        body = compare(boss, a, b)
        assert sentence in words(body)
        shown = [f"{float(rate):,.6f}".rstrip("0").rstrip(".") for rate in (before, after)]
        assert rows(body, "Figures side by side")[0] == f"tok/s at the SLO {' '.join(shown)} {line}"


def test_open_and_closed_loop_share_no_axis_but_unlimited_levels_decide(llama: Variant, boss: Client) -> None:
    chat = sweeps.profile()
    a, b = sweeps.measured(llama, chat), faster(llama, chat)
    b.levels.all().delete()
    unlimited = [sweeps.level(None, rate, 20, arrival=POISSON) for rate in (210, 225)]
    sweeps.keep(b, [judge(sweeps.level(3.0, 90, 20, arrival=POISSON), sweeps.SLO)])
    sweeps.keep(b, [judge(one, sweeps.SLO) for one in unlimited])
    body = compare(boss, a, b)
    assert "their loads arrived differently" in body
    assert "desk-chart-after" not in body
    assert "reached at 4 streams no limit of load" in rows(body, "Figures side by side")


def test_a_choice_that_is_none_is_said_with_what_to_do(llama: Variant, boss: Client) -> None:
    a = sweeps.measured(llama, sweeps.profile())
    assert "Choose two: here, or mark them in the list" in boss.get(f"{LIST}compare/").content.decode()
    assert "There is no measurement &quot;99&quot;" in compare(boss, a, 99, 404)
    for odd in ("x", "-1", "9" * 30, "１２", HOSTILE):
        assert HOSTILE not in compare(boss, odd, a, 404)
    assert "One measurement is chosen; choose the other one." in compare(boss, a, "")
    assert "That is one measurement twice" in compare(boss, a, a)
    assert "That is one measurement twice" in compare(boss, a, f"0{a.pk}")
    assert boss.post(f"{LIST}compare/").status_code == 405


def test_two_marked_in_the_list_are_compared_the_older_first(llama: Variant, boss: Client) -> None:
    chat = sweeps.profile()
    new, old, other = faster(llama, chat), sweeps.measured(llama, chat), builders.measurement(llama, chat)
    assert "Compare: two measurements side by side" in boss.get(LIST).content.decode()
    data = {"action": "compare", "_selected_action": [new.pk, old.pk]}
    assert boss.post(LIST, data)["Location"] == f"{LIST}compare/?a={old.pk}&b={new.pk}"
    for marked, said in (([new.pk], "1 is marked"), ([new.pk, old.pk, other.pk], "3 are marked")):
        response = boss.post(LIST, data | {"_selected_action": marked}, follow=True)
        assert f"Compare takes two measurements; {said}. Mark two" in response.content.decode()


def test_a_measurement_links_to_the_one_before_it(llama: Variant, boss: Client) -> None:
    chat = sweeps.profile()
    first = sweeps.measured(llama, chat)
    second = faster(llama, chat, at=builders.DAY_ONE)
    third = faster(llama, chat)
    sweeps.measured(llama, sweeps.profile("rag"), at=NOW - timedelta(hours=1))
    for row, before in ((first, None), (second, first), (third, second)):
        body = boss.get(reverse("admin:sizing_measurement_change", args=[row.pk])).content.decode()
        found = re.findall(r"compare/\?a=(\d+)&amp;b=(\d+)", body)
        assert found == ([(str(before.pk), str(row.pk))] if before else [])


def test_comparing_needs_the_permission_to_look_and_no_more(llama: Variant, outsider: Client) -> None:
    chat = sweeps.profile()
    a, b = sweeps.measured(llama, chat), faster(llama, chat)
    compare(outsider, a, b, 403)
    assert Client().get(f"{LIST}compare/").status_code == 302
    looker = Client()
    looker.force_login(person("looker", "view_measurement"))
    assert "12.5" in compare(looker, a, b)


def test_names_are_escaped_and_thirty_levels_take_as_many_queries_as_three(
    llama: Variant, boss: Client
) -> None:
    chat = sweeps.profile()
    a, b = sweeps.measured(llama, chat), faster(llama, chat, engine=HOSTILE, warnings=[HOSTILE])
    compare(boss, a, b)
    with CaptureQueriesContext(connection) as few:
        body = compare(boss, a, b)
    assert "alert(1)" in body
    assert HOSTILE not in body
    for number in range(20):
        builders.measurement(llama, chat, 100 + number)
    sweeps.keep(b, [judge(sweeps.level(load, 10, 10), sweeps.SLO) for load in range(20, 47)])
    assert BenchLevel.objects.count() == 33
    with CaptureQueriesContext(connection) as many:
        compare(boss, a, b)
    assert len(many) == len(few) <= 5
