"""What a newcomer meets first: the README's inventory, and forms that say in words what is wrong."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

from django.core.management import call_command
from django.template.loader import render_to_string
from django.test import Client

from sizing.admin.measured.level_table import Listed, listed_part
from sizing.domain.levels import CONCURRENCY, Judged, Level, Slo, Verdict
from sizing.models import Target
from sizing.services.wishes import Kind, worst_first
from tests import builders
from tests.admin.test_measurement_page import words


def test_the_readmes_inventory_loads_without_a_warning_about_what_fits(db: None, tmp_path: Path) -> None:
    found = re.search(r"```yaml\n(version: 1\n.*?)```", Path("README.md").read_text(), re.DOTALL)
    assert found
    file = tmp_path / "fleet.yaml"
    file.write_text(found[1])
    call_command("load_inventory", str(file))
    (standing,) = worst_first()
    assert standing.kind is Kind.FITS
    assert standing.answer is not None
    assert (standing.answer.count.needed, standing.answer.count.current) == (3, 1)


def test_forms_say_in_words_what_the_tables_refuse(boss: Client) -> None:
    node = {"name": "n", "cost_per_hour": "-5", "gpus-TOTAL_FORMS": "0", "gpus-INITIAL_FORMS": "0"}
    profile = {
        "name": "p",
        "input_tokens": "1",
        "output_tokens": "1",
        "percentile": "95",
        "arrival": "poisson",
    }
    for kind, given, errors in (
        ("node", node, {"cost_per_hour": ["A cost is 0 or more; left empty it is not known."]}),
        (
            "benchprofile",
            profile,
            {"ttft_ms": ["The SLO needs at least one limit: TTFT, ITL or end to end."]},
        ),
        (
            "benchprofile",
            profile | {"itl_ms": "-1"},
            {"itl_ms": ["A limit is more than 0; left empty there is none."]},
        ),
    ):
        response = boss.post(f"/admin/sizing/{kind}/add/", given)
        assert response.context["adminform"].form.errors == errors


def test_of_a_model_that_serves_no_tokens_nothing_is_asked_or_saved(boss: Client) -> None:
    model = builders.model("notebooks", workload="other")
    builders.variant(model)
    url = f"/admin/sizing/servedmodel/{model.pk}/target/"
    body = unescape(words(boss.get(url, {"tokens_per_sec": "901"}).content.decode()))
    told = '"notebooks" serves no tokens: its workload is "other", so there is nothing to ask of it'
    assert told in body
    assert "Save as target" not in body
    assert "Enter a measurement" not in body
    for path in (url, "/admin/sizing/target/add/"):
        given = {"model": str(model.pk), "tokens_per_sec": "901", "utilization": "1"}
        assert told in unescape(words(boss.post(path, given, follow=True).content.decode()))
    assert not Target.objects.exists()


def test_what_counts_of_a_load_that_failed_once_and_passed_once_is_said() -> None:
    runs = ((8, Verdict.PASS), (28, Verdict.FAIL), (28, Verdict.PASS))
    judged = [
        Judged(Level(arrival=CONCURRENCY, load=load, tok_per_sec=load * 20.0), verdict, "")
        for load, verdict in runs
    ]
    part = listed_part([Listed(at, one) for at, one in enumerate(judged, 1)], Slo(ttft_ms=500))
    assert part["split"] == ["28 streams passed 1 of 2 times and counts as failed."]
    body = render_to_string("admin/sizing/levels.html", {"levels": part})
    assert f"<p>{part['split'][0]} A load passes where each of its runs does; " in body
