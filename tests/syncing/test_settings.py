"""The settings that name a cluster, and what the desk then runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from llmgw_admin.environment import KubernetesEnvironment, read_environment
from llmgw_admin.given import WrongSetting

NAMES = ("KUBERNETES", "KUBECONFIG", "KUBERNETES_CONTEXT", "KUBERNETES_SERVICE_HOST")


@pytest.fixture
def read(monkeypatch, tmp_path):
    def with_values(**values: str) -> KubernetesEnvironment:
        for name in NAMES:
            monkeypatch.delenv(name, raising=False)
        for name, value in {"DATA_DIR": str(tmp_path / "data"), "HOME": str(tmp_path), **values}.items():
            monkeypatch.setenv(name, value)
        return read_environment(tmp_path).kubernetes

    return with_values


def test_no_cluster_is_followed_unless_one_is_named(read):
    assert not read(KUBECONFIG="/no/such/file").on
    assert not read(KUBERNETES="off", KUBERNETES_CONTEXT="prod").on


def test_a_kubeconfig_is_taken_from_where_kubectl_takes_it(read, tmp_path):
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text("{}")
    expected = KubernetesEnvironment("kubeconfig", str(tmp_path / ".kube" / "config"), "prod")
    assert read(KUBERNETES="kubeconfig", KUBERNETES_CONTEXT="prod") == expected
    (tmp_path / "other").write_text("{}")
    both = f"{tmp_path}/other{os.pathsep}{tmp_path}/no"
    assert read(KUBERNETES="kubeconfig", KUBECONFIG=both).kubeconfig == both


def test_in_a_pod_the_service_account_is_used(read):
    environment = read(KUBERNETES="in-cluster", KUBERNETES_SERVICE_HOST="10.0.0.1")
    assert environment == KubernetesEnvironment("in-cluster", "", "")


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"KUBERNETES": "yes"}, "KUBERNETES='yes' is not one of off, in-cluster, kubeconfig"),
        (
            {"KUBERNETES": "in-cluster"},
            "KUBERNETES=in-cluster, but this is no pod: it has no KUBERNETES_SERVICE_HOST",
        ),
        (
            {"KUBERNETES": "in-cluster", "KUBERNETES_SERVICE_HOST": "x", "KUBERNETES_CONTEXT": "prod"},
            "KUBERNETES_CONTEXT is for KUBERNETES=kubeconfig",
        ),
        ({"KUBERNETES": "kubeconfig"}, "KUBECONFIG='~/.kube/config' names no file that can be read"),
        (
            {"KUBERNETES": "kubeconfig", "KUBECONFIG": "/no/such"},
            "KUBECONFIG='/no/such' names no file that can be read",
        ),
    ],
)
def test_a_wrong_value_is_one_clear_line(read, values, line):
    with pytest.raises(WrongSetting) as caught:
        read(**values)
    assert str(caught.value) == line


@pytest.mark.parametrize("mode", ["off", "in-cluster"])
def test_the_sync_is_on_the_schedule_only_where_there_is_a_cluster(mode, tmp_path: Path):
    code = (
        "import json, django; django.setup(); from django.conf import settings as s;"
        "print(json.dumps([e['task'] for e in s.CELERY_BEAT_SCHEDULE.values()]))"
    )
    values = {name: value for name, value in os.environ.items() if name not in NAMES}
    values |= {
        "KUBERNETES": mode, "KUBERNETES_SERVICE_HOST": "10.0.0.1", "DATA_DIR": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "llmgw_admin.settings",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=settings.BASE_DIR,
        env=values,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("sizing.tasks.sync_cluster" in json.loads(done.stdout)) == (mode != "off")
    assert settings.CELERY_TASK_ROUTES["sizing.tasks.sync_cluster"] == {"queue": "sync"}
