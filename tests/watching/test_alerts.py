"""The rules that come with the desk, as Prometheus itself reads and tries them."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from django.conf import settings

FOLDER = settings.BASE_DIR / "deploy/prometheus"


@pytest.fixture(scope="module")
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("there is no promtool on this machine (Debian: apt-get install prometheus)")
    return found


@pytest.mark.parametrize("words", ["check rules alerts.yml", "test rules alerts_test.yml"])
def test_the_rules_are_sound_and_fire_when_they_should(promtool: str, words: str) -> None:
    ran = subprocess.run([promtool, *words.split()], cwd=FOLDER, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_rule_is_tried() -> None:
    rules, tests = ((FOLDER / name).read_text(encoding="utf-8") for name in ("alerts.yml", "alerts_test.yml"))
    alerts = [line.split()[-1] for line in rules.splitlines() if "- alert:" in line]
    assert len(alerts) == 16
    assert [name for name in alerts if f"alertname: {name}\n" not in tests] == []
