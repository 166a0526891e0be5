"""Every page of the admin that a GET can reach: it fits, is accessible, and its console is quiet."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin.utils import quote
from django.db.models import Model
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from sizing.models import (
    Answer,
    BenchFile,
    BenchImport,
    BenchProfile,
    Measurement,
    Node,
    Refresh,
    ServedModel,
    Variant,
)
from tests import builders
from tests.admin import sweeps
from tests.admin.cluster import make_everything
from tests.admin.test_refresh_page import LIVE
from tests.browser.conftest import Desk

LONG = "-of-a-team-with-a-rather-long-name-and-no-space-in-it.example.internal"
# What is fetched by scripts and forms, saved as a file, or leads elsewhere.
NO_PAGES = {"ask", "autocomplete", "board_live", "jsi18n", "login", "logout", "view_on_site"}
NO_PAGES_OF_A_KIND = {"csv", "export", "file", "live", "live_rows"}
# What only a POST reaches.
ACTS = {"again", "cancel", "discard", "force", "import", "leave-out", "load", "now", "partial"}
ACTS |= {"refresh", "retry", "store"}
# What nobody does by hand.
FORBIDDEN = {
    "sizing_answer_add",
    "sizing_answer_delete",
    "sizing_apitoken_add",
    "sizing_clustersync_add",
    "sizing_clustersync_delete",
    "sizing_refresh_add",
}


def names() -> Iterator[tuple[str, list[str]]]:
    """Each address of the admin by its name, with the names of what it takes."""

    def below(patterns: list[URLPattern | URLResolver]) -> Iterator[tuple[str, list[str]]]:
        for pattern in patterns:
            if isinstance(pattern, URLResolver):
                yield from below(pattern.url_patterns)
            elif pattern.name:
                yield pattern.name, list(pattern.pattern.regex.groupindex)

    found = {one.namespace: one for one in get_resolver().url_patterns if isinstance(one, URLResolver)}
    yield from below(found["admin"].url_patterns)


def addresses(shown: dict[str, Model]) -> Iterator[tuple[str, str]]:
    """The address of each page by name; one of an object leads to the one to be shown, else to the first."""
    for name, taken in dict(names()).items():
        app, _, rest = name.partition("_")
        kind, _, page = rest.partition("_")
        if name in NO_PAGES or page in NO_PAGES_OF_A_KIND | ACTS or name in FORBIDDEN:
            continue
        if name == "app_list":
            for label in ("sizing", "auth"):
                yield f"{name} {label}", reverse("admin:app_list", args=[label])
            continue
        values: dict[str, Any] = {}
        if taken:
            row = shown.get(kind) or apps.get_model(app, kind)._default_manager.order_by("pk").first()
            assert row, f"there is no {kind} to look at"
            values = dict.fromkeys(taken, quote(row.pk))
        yield name, reverse(f"admin:{name}", kwargs=values)


def fill() -> dict[str, Model]:
    """A desk with some of everything, under names too long for a phone; and what to look at of it."""
    make_everything(hostile=LONG)
    now = timezone.now()
    variant, profile = Variant.objects.get(), BenchProfile.objects.get()
    BenchFile.objects.update(bench_import=None, measurement=Measurement.objects.get())
    BenchImport.objects.update(state="running", progress=40)
    Refresh.objects.update(state="failed", error="gone " * 40, started_at=now, finished_at=now)
    for days in range(1, 8):
        builders.measurement(variant, profile, 150 + days, at=now - timedelta(days=days), bound="floor")
    measured = sweeps.measured(variant, profile, at=now, warnings=["few_requests: 60"])
    run = sweeps.refresh(variant, profile, "running", started_at=now, live=LIVE, progress=30)
    sweeps.keep(run, sweeps.sweep())
    builders.node(f"gpu-16{LONG}", 16, schedulable=False)
    ServedModel.objects.update(default_profile=profile)
    return {"measurement": measured, "refresh": run}


def more_addresses() -> Iterator[tuple[str, str]]:
    """Pages that are something else with a question."""
    model, node = ServedModel.objects.get(), Node.objects.earliest("pk")
    target = reverse("admin:sizing_servedmodel_target", args=[model.pk])
    first, last = Measurement.objects.earliest("pk"), Measurement.objects.latest("pk")
    compare = reverse("admin:sizing_measurement_compare")
    nodes = reverse("admin:sizing_node_changelist")
    failed = Refresh.objects.get(state="failed")
    yield "an answer", f"{target}?tokens_per_sec=5000"
    yield "an answer as if", f"{target}?tokens_per_sec=5000&as_if=uncordon:gpu-16{LONG}"
    yield "no answer", f"{target}?tokens_per_sec=much"
    yield "two measurements", f"{compare}?a={first.pk}&b={last.pk}"
    yield "what a node refuses", f"{reverse('admin:sizing_node_change', args=[node.pk])}?model={model.pk}"
    kept = reverse("admin:sizing_answer_change", args=[Answer.objects.latest("asked_at").pk])
    yield "an answer computed again", f"{kept}?replay=1"
    yield "a run that failed", reverse("admin:sizing_refresh_change", args=[failed.pk])
    yield "a list without a match", f"{nodes}?q=nothing"
    yield "a form in a window of its own", f"{reverse('admin:sizing_benchprofile_add')}?_popup=1"
    yield "the board, filtered", f"{reverse('admin:index')}?zone=nowhere"


@pytest.mark.looks
def test_every_page_fits_is_accessible_and_quiet(desk: Desk) -> None:
    shown = fill()
    wrong = {}
    for name, url in [*addresses(shown), *more_addresses()]:
        answer = desk.page.goto(f"{desk.address}{url}")
        assert answer is not None
        faults = [] if answer.status == 200 else [f"status {answer.status}"]
        if faults := faults + desk.faults():
            wrong[name] = faults
    assert wrong == {}
