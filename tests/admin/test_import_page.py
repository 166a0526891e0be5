"""Result files given on a page: what they show stands there before anything is stored."""

from __future__ import annotations

import json
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from sizing.admin.imports import giving
from sizing.models import BenchImport, BenchProfile, Measurement, Variant
from sizing.services import imports
from tests import builders
from tests.admin.given import (
    BROKEN,
    FAILS,
    GIVE,
    LIST,
    PASSES,
    do,
    errors_of,
    give,
    given,
    page,
    url,
)
from tests.admin.test_every_page import HOSTILE
from tests.admin.test_measurement_page import words
from tests.files.builders import vllm


def test_the_form_says_what_is_read_and_how_much_of_it(boss: Client) -> None:
    body = words(boss.get(GIVE).content.decode())
    for name in ("vLLM bench", "GuideLLM", "AIPerf", "genai-perf", "inference-perf", "SGLang", "InferenceX"):
        assert name in body
    assert "llmperf" in body
    assert "llm-d Benchmark Report" in body
    assert "At most 100 files of 50 MiB each and 200 MiB in all" in body


def test_an_address_may_choose_beforehand_and_nonsense_in_it_chooses_nothing(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    body = boss.get(GIVE, {"variant": llama.pk, "profile": chat.pk}).content.decode()
    assert f'<option value="{llama.pk}" selected>' in body
    assert f'<option value="{chat.pk}" selected>' in body
    for odd in ("abc", "9" * 30, HOSTILE, "-1"):
        body = boss.get(GIVE, {"variant": odd, "profile": odd}).content.decode()
        assert "selected>" not in body
        assert HOSTILE not in body


def test_a_form_without_files_or_variant_says_so_at_both(llama: Variant, boss: Client) -> None:
    response = boss.post(GIVE, {})
    assert response.context["form"].errors == {
        "result_files": ["Choose at least one file."],
        "variant": ["Choose the variant that was measured."],
    }
    assert not BenchImport.objects.exists()


@pytest.mark.parametrize("odd", ["999999", "abc", "9" * 30, HOSTILE])
def test_an_unknown_variant_or_profile_is_an_error_at_its_field(
    odd: str, llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    response = give(boss, llama, chat, PASSES, variant=odd)
    assert errors_of(response, "variant") == ["There is no such variant."]
    response = give(boss, llama, chat, PASSES, profile=odd)
    assert errors_of(response, "profile") == ["There is no such profile."]


def test_without_a_profile_the_models_default_is_taken_or_asked_for(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    response = give(boss, llama, chat, PASSES, profile="")
    assert errors_of(response, "profile") == ["Llama has no default profile; name one of chat."]
    llama.model.default_profile = chat
    llama.model.save()
    assert given(boss, llama, chat, PASSES, profile="").profile == chat


def test_names_may_be_written_where_the_search_does_not_work(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    written = {"variant": "", "profile": "", "model_name": "llama", "profile_name": "chat"}
    row = given(boss, llama, chat, PASSES, **written, variant_name="tp4")
    assert (row.variant, row.profile) == (llama, chat)
    BenchImport.objects.all().delete()
    response = give(boss, llama, chat, PASSES, **written | {"model_name": "gemma"})
    assert errors_of(response, "variant") == ['No model "gemma".']
    response = give(boss, llama, chat, PASSES, **written, variant_name="tp8")
    assert errors_of(response, "variant") == ['Llama has no variant "tp8"; there are tp4.']
    response = give(boss, llama, chat, PASSES, **written | {"profile_name": "rag"})
    assert errors_of(response, "profile") == ['No profile "rag"; there are chat.']


def test_more_files_than_are_taken_are_an_error_at_the_field(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    many = [(f"{i}.json", "{}") for i in range(101)]
    response = give(boss, llama, chat, *many)
    assert errors_of(response, "result_files") == ["At most 100 files are taken at once."]


def test_files_that_are_too_large_are_an_error_at_the_field(
    llama: Variant, chat: BenchProfile, boss: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "MOST_FILE_BYTES", 100)
    assert errors_of(give(boss, llama, chat, PASSES, ("small.json", "{}")), "result_files") == [
        "c8.json: at most 0 MiB were expected"
    ]


def test_an_upload_of_too_many_bytes_is_taken_no_further_and_an_error_at_the_field(
    llama: Variant, chat: BenchProfile, boss: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(giving, "MOST_BYTES", 1000)
    response = give(boss, llama, chat, PASSES, FAILS)
    assert errors_of(response, "result_files") == [
        "The files have more than 200 MiB in all; nothing was read."
    ]


def test_the_figure_is_there_before_anything_is_stored(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    body = page(boss, given(boss, llama, chat, PASSES, FAILS))
    said = words(body)
    assert "? not stored yet" in said
    assert "One replica serves 256 tok/s on chat. 256 tok/s; the next level tried, 400, failed." in said
    assert '<span class="desk-badge desk-badge-edge">edge</span>' in body
    for fact in (
        "figure 256 tok/s, edge: a higher load failed the SLO",
        "workload 64 tokens in, 32 out, fixed concurrency",
        "measured 2026-11-30 12:00 UTC",
        "how vllm bench serve",
        "kept 2 levels and 2 whole files",
        "SLO 95 % of the requests: TTFT ≤ 500 ms, TPOT ≤ 50 ms",
        "by boss, on a page",
    ):
        assert fact in said.replace("\N{NARROW NO-BREAK SPACE}", " "), fact
    assert not Measurement.objects.exists()


def test_the_curve_and_every_point_with_verdict_and_why_stand_there(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    body = page(boss, given(boss, llama, chat, FAILS, PASSES))
    assert body.count('role="img"') == 2
    assert "<title>8 streams: 256 tok/s, pass</title>" in body
    assert "<title>16 streams: TPOT p95 75 ms of 50, fail</title>" in body
    assert body.count('class="desk-chart-bracket"') == 2
    rows = [words(row) for row in re.findall(r"<tr[^>]*>(?:(?!</tr>).)*</tr>", body, re.DOTALL)]
    loads = [row.partition(" ")[0] for row in rows if " streams " in row]
    assert loads == ["8", "16", "16", "8"]  # by load in the table of levels, as given among the files
    assert (
        "8 streams gives the figure pass every limit met at p95 256 80 0 8"
        " 42 40 60 70 28 28 29 30 – – – – c8.json" in rows
    )
    assert "8 streams pass every limit met at p95 256 80 0 60 29" in rows
    assert "16 streams fail TPOT of 60 ms is beyond 50 ms 400 125 0 60 75" in rows


def test_a_floor_is_called_one(llama: Variant, chat: BenchProfile, boss: Client) -> None:
    body = words(page(boss, given(boss, llama, chat, PASSES)))
    assert "One replica serves at least 256 tok/s on chat." in body
    assert "256 tok/s, floor: at least this: no load tried failed the SLO" in body


def test_an_slo_that_was_never_met_can_be_stored_and_counts_for_nothing(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    row = given(boss, llama, chat, FAILS)
    body = words(page(boss, row))
    assert "One replica does not meet the SLO of chat, not even at the lowest load tried." in body
    assert "figure the SLO is not met: it counts for nothing" in body
    do(boss, row, "store")
    assert Measurement.objects.get().slo_met is False


def test_open_and_closed_loop_are_two_sweeps_of_which_one_counts(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    open_loop = ("rate.json", vllm(max_concurrency=None, request_rate=8.0))
    body = words(page(boss, given(boss, llama, chat, PASSES, open_loop)))
    assert "closed loop , 1 point: at least 256 tok/s; no higher level was tried (counts)" in body
    assert "open loop , 1 point: at least 256 tok/s; no higher level was tried" in body
    assert "1 point of open loop does not count beside closed loop" in body


def test_names_and_texts_of_files_are_escaped_everywhere(chat: BenchProfile, boss: Client) -> None:
    name = '"><img src=x onerror=alert(1)>.json'
    variant = builders.variant(builders.model(f"llama{HOSTILE}"), f"tp4{HOSTILE}", 4)
    odd = vllm(model_id=HOSTILE, backend=HOSTILE)
    row = given(boss, variant, chat, (name, odd), (f"broken{name}", f'{{"{HOSTILE}": 1}}'))
    for path in (url(row), url(row, "live"), LIST, f"{LIST}?q={HOSTILE}"):
        body = boss.get(path).content.decode()
        assert HOSTILE not in body, path
        assert "<img src=x" not in body, path
    assert "&lt;img src=x onerror=alert(1)&gt;" in page(boss, row)
    said = boss.post(url(row, "leave-out"), follow=True).content.decode()
    assert Measurement.objects.exists()
    stored = page(boss, row)
    assert "left out: broken&quot;&gt;&lt;img src=x onerror=alert(1)&gt;" in stored
    for body in (said, stored):
        assert "&lt;img src=x onerror=alert(1)&gt;" in body
        assert HOSTILE not in body
        assert "<img src=x" not in body


def test_thirty_points_in_ten_files_take_as_many_queries_as_three_in_one(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    def points(first: int, last: int) -> str:
        return "\n".join(json.dumps(vllm(max_concurrency=load)) for load in range(first, last))

    few = given(boss, llama, chat, ("few.jsonl", points(1, 4)))
    many = given(boss, llama, chat, *((f"{i}.jsonl", points(3 * i + 1, 3 * i + 4)) for i in range(10)))
    page(boss, few)
    counts = []
    for row in (few, many):
        with CaptureQueriesContext(connection) as queries:
            body = page(boss, row)
        counts.append(len(queries))
        assert not any("sizing_benchfilepart" in query["sql"] for query in queries)
    assert body.count('<div class="desk-file">') == 10
    assert counts[0] == counts[1] <= 10


def test_the_list_says_what_came_of_each(llama: Variant, chat: BenchProfile, boss: Client) -> None:
    stored = given(boss, llama, chat, PASSES)
    do(boss, stored, "store")
    given(boss, llama, chat, FAILS)
    given(boss, llama, chat, BROKEN)
    with CaptureQueriesContext(connection) as queries:
        body = words(boss.get(LIST).content.decode())
    assert not any('"preview"' in query["sql"] for query in queries)
    for said in (
        f"#{stored.pk} ✓ stored llama (tp4) on chat 256 tok/s, 2026-11-30 by boss, on a page",
        "? not stored yet llama (tp4) on chat can be stored",
        "? not stored yet llama (tp4) on chat cannot be stored as it is",
    ):
        assert said in body, said
    assert "1 bench import " in words(boss.get(LIST, {"state": "stored"}).content.decode())
    # The files of one are its measurement's now, of another still its own.
    for name in ("c8.json", "cut.json"):
        assert "1 bench import " in words(boss.get(LIST, {"q": name}).content.decode())


def test_where_only_another_percentile_is_told_that_one_is_shown(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    only_p99 = {name: value for name, value in vllm().items() if not name.startswith("p95_")}
    row = given(boss, llama, chat, ("a.json", only_p99))
    body = page(boss, row)
    assert '<td class="desk-n">p99 70</td>' in body
    assert "p99 latency, share of its limit" in body
    said = words(body)
    assert "TTFT p99 TPOT p99" in said
    assert "Where p95 is not told, p99 is shown." in said
    row = given(boss, llama, chat, PASSES)
    assert "is not told" not in words(page(boss, row))


def test_the_time_may_be_declared_on_the_page(llama: Variant, chat: BenchProfile, boss: Client) -> None:
    undated = ("a.json", vllm(date=None))
    response = give(boss, llama, chat, undated, measured_at="2999-01-01")
    said = "A time of measurement that has passed was expected, not 2999-01-01 00:00 UTC."
    assert errors_of(response, "measured_at") == [said]
    row = given(boss, llama, chat, undated, measured_at="2026-05-01 10:00")
    assert "2026-05-01 10:00 UTC" in words(page(boss, row))


def test_the_variant_is_shown_as_required(boss: Client) -> None:
    body = boss.get(GIVE).content.decode()
    assert re.search(r'<label class="required" for="id_variant">', body)
    assert not re.search(r'<label class="required" for="id_profile">', body)


def test_the_list_says_of_a_stored_one_that_the_slo_is_not_met(
    llama: Variant, chat: BenchProfile, boss: Client
) -> None:
    row = given(boss, llama, chat, FAILS)
    do(boss, row, "store")
    body = words(boss.get(LIST).content.decode())
    assert "SLO not met" in body
    assert "0 tok/s" not in body
