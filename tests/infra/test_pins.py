"""Every package that is installed is pinned by version and hash, and fits what is asked for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
ENTRY = re.compile(r"^(?P<name>[a-z0-9._-]+)(?:\[[a-z,]+\])?==(?P<version>[^ ;\\]+)", re.IGNORECASE)


def asked_for(name: str) -> dict[str, str]:
    """Versions by name, as people write them."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return dict(entry(line) for line in lines if line and line[0] not in "#-")


def pinned(name: str) -> dict[str, str]:
    """Versions by name, each with at least one hash."""
    entries = re.split(r"\n(?=[a-zA-Z0-9])", (ROOT / name).read_text(encoding="utf-8"))[1:]
    for text in entries:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", text), text.splitlines()[0]
    return dict(entry(text) for text in entries)


def entry(text: str) -> tuple[str, str]:
    found = ENTRY.match(text)
    assert found, text
    return _plain(found["name"]), found["version"]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("name", ["requirements", "requirements-dev"])
def test_what_is_asked_for_is_pinned_with_hashes(name):
    wanted, have = asked_for(f"{name}.in"), pinned(f"{name}.txt")
    assert len(wanted) > 10
    assert {package: have.get(package) for package in wanted} == wanted, "run script/pin"


def test_development_runs_the_versions_of_production():
    production, development = pinned("requirements.txt"), pinned("requirements-dev.txt")
    assert {package: development.get(package) for package in production} == production


@pytest.mark.parametrize("name", ["requirements", "requirements-dev"])
@pytest.mark.parametrize("kind", ["in", "txt"])
def test_no_index_and_no_address_stands_in_a_list(name, kind):
    text = (ROOT / f"{name}.{kind}").read_text(encoding="utf-8")
    assert not re.search(r"https?://|^--(?:extra-)?index|^-i |^--find-links|file:", text, re.MULTILINE)
