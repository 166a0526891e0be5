"""What every test shares: no network, no silent skips in CI, a browser, and the choice of the database."""

from __future__ import annotations

import importlib
import os
import shutil
import socket
from collections.abc import Generator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.core.cache import cache
from django.db import connection
from django.test import TransactionTestCase

from sizing.services import answers

REQUIRE_ALL = os.environ.get("REQUIRE_ALL") == "1"
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--only-database",
        action="store_true",
        help="run only tests that touch the database: for the second kind of database",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--only-database"):
        away = [item for item in items if not touches_database(item)]
        config.hook.pytest_deselected(items=away)
        items[:] = [item for item in items if touches_database(item)]


def touches_database(item: pytest.Item) -> bool:
    """Whether the outcome of a test can depend on the kind of database."""
    if item.get_closest_marker("looks"):
        return False
    if any(item.get_closest_marker(name) for name in ("django_db", "database")):
        return True
    if {"db", "transactional_db", "live_server"} & set(getattr(item, "fixturenames", ())):
        return True
    case = getattr(item, "cls", None)
    return isinstance(case, type) and issubclass(case, TransactionTestCase)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """With ``REQUIRE_ALL=1`` a skipped test is a failed one."""
    report = yield
    if REQUIRE_ALL and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"REQUIRE_ALL=1 allows no skip: {_reason(report.longrepr)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """The same for a file that skips itself as a whole."""
    report = yield
    if REQUIRE_ALL and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"REQUIRE_ALL=1 allows no skip: {_reason(report.longrepr)}"
    return report


def _reason(longrepr: object) -> object:
    return longrepr[2] if isinstance(longrepr, tuple) else longrepr


@pytest.fixture(autouse=True, scope="session")
def no_network() -> Iterator[None]:
    """Nothing here talks to another machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and str(address[0]) not in ("localhost", "127.0.0.1", "::1"):
            raise AssertionError(f"a test wanted to connect to {address[0]}")
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        yield


@pytest.fixture(autouse=True)
def empty_cache() -> None:
    """Requests counted in one test do not hold up the next; no answer is of another database."""
    cache.clear()
    answers.forget()


@pytest.fixture
def groups(db: None) -> None:
    """The groups as the migration makes them: a test that empties all tables may have come before."""
    migration = importlib.import_module("sizing.migrations.0007_groups")
    migration.make_groups(apps, SimpleNamespace(connection=connection))


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Where the machine's Chromium is; without one the test is skipped."""
    found = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if found is None:
        pytest.skip("there is no Chromium on this machine (Debian: apt-get install chromium)")
    return found


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any], chromium_path: str) -> dict[str, Any]:
    """For pytest-playwright: the machine's own Chromium, which refuses its sandbox to root."""
    # Playwright keeps an event loop in this thread, where Django would refuse every query.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    return browser_type_launch_args | {"executable_path": chromium_path, "args": ["--no-sandbox"]}
