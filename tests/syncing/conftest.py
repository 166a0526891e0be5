"""A cluster that is served on this machine, and a desk that follows it."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from pytest_django import Settings

from llmgw_admin.environment import KubernetesEnvironment
from sizing.inventory.kubernetes.facts import Listing
from sizing.syncing import running
from sizing.syncing.bringing import Outcome
from sizing.syncing.timing import Timing
from tests.syncing.api_server import ApiServer, api_server
from tests.syncing.made import node, pod

QUICK = Timing(
    run=30, lease=20, beat=0.05, look=0.05, tick=0.01, connect=2, answer=1, begin=1, watch=20,
    silence=1, debounce=0.05, settle=0.1, longest_pause=0.1,
)  # fmt: skip
STORY_S = 20.0

Story = Generator[Callable[[], bool], None, None]
"""Steps of a test: each waits until what it yields is true."""


def write_kubeconfig(path: Path, server: str, token: str = "", cluster: Mapping[str, object] = {}) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": {"token": token} if token else {}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(yaml.safe_dump(config))


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    with api_server() as server:
        yield server


@pytest.fixture
def kubeconfig(api: ApiServer, tmp_path: Path, settings: Settings) -> Path:
    """The kubeconfig of a desk whose cluster is `api`."""
    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, api.address)
    settings.KUBERNETES = KubernetesEnvironment("kubeconfig", str(path), "")
    return path


@pytest.fixture
def cluster(api: ApiServer) -> ApiServer:
    """One node and one pod on it."""
    api.put("nodes", node("n1"))
    api.put("pods", pod("a"))
    return api


class Brought:
    """In place of the tables: what would have been brought in, by names."""

    def __init__(self) -> None:
        self.listings: list[Listing] = []

    def __call__(
        self,
        listing: Listing,
        *,
        live: bool,
        guard: Callable[[], None],
        after: Callable[[Outcome], None],
    ) -> Outcome:
        assert live
        guard()
        self.listings.append(listing)
        return Outcome({})

    @property
    def nodes(self) -> set[str]:
        return set(self.listings[-1].nodes) if self.listings else set()

    @property
    def pods(self) -> set[str]:
        return {pod.key for pod in self.listings[-1].pods.values()} if self.listings else set()


@pytest.fixture
def brought() -> Brought:
    return Brought()


def play(story: Story, bring: running.Bring, timing: Timing = QUICK) -> bool:
    """Follow the cluster in this thread until the story is at its end."""
    until = time.monotonic() + STORY_S
    waits_for: Callable[[], bool] | None = next(story)

    def stopped() -> bool:
        nonlocal waits_for
        while waits_for is not None and waits_for():
            waits_for = next(story, None)
        assert time.monotonic() < until, f"it never came true: {inspect.getsource(waits_for or next)}"
        return waits_for is None

    return running.run(bring=bring, timing=timing, stopped=stopped)
