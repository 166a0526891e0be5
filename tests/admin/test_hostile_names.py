"""At every address, whatever stands in the database is text: nothing of it becomes markup."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from tests.admin.everything import address, make_one_of_each, routes
from tests.admin.hostile import EVIL, MARK, plant

HTML = ("text/html", "application/xhtml", "image/svg")


def test_no_text_becomes_markup_at_any_address(boss: Client, groups: None) -> None:
    rows = make_one_of_each()
    assert plant() > 60
    for row in filter(None, rows.values()):
        row.refresh_from_db()
    who = User.objects.get(is_superuser=True)
    LogEntry.objects.log_actions(who.pk, [rows["sizing.node"]], 2, EVIL)
    wrong, met = [], 0
    for name, pattern in dict.fromkeys(routes()):
        url = address(name, pattern, rows)
        for path in (url, f"{url}?q={EVIL}&tokens_per_sec=10&as_if={EVIL}&name={EVIL}&next={EVIL}&e={EVIL}"):
            cache.clear()
            answer: Any = boss.get(path)
            body = answer.getvalue().decode("utf-8", "replace")
            kind = answer.headers.get("Content-Type", "")
            if answer.status_code >= 500 or (MARK in body and kind.startswith(HTML)):
                wrong.append(f"{path}: {answer.status_code}")
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            met += "&lt;script&gt;owned=1" in body
    assert wrong == []
    assert met > 30  # it was there, as text
