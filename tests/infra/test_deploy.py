"""What stands in deploy/, compose.yaml and the Dockerfile fits the code, and linters have nothing to say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes.client  # type: ignore[import-untyped]
import pytest
import yaml
from django.conf import settings

from llmgw_admin import given
from llmgw_admin.setting_table import SETTINGS

ROOT = Path(settings.BASE_DIR)
MANIFESTS = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
DESK_SERVICES = {
    name: service for name, service in COMPOSE["services"].items() if service["image"].startswith("llmgw")
}
KNOWN = set(SETTINGS) | {f"{name}_FILE" for name, setting in SETTINGS.items() if setting.secret}
QUEUES = {"desk", "measuring", "sync"}


def objects() -> list[dict[str, Any]]:
    return [one for path in MANIFESTS for one in yaml.safe_load_all(path.read_text(encoding="utf-8")) if one]


def of_kind(*kinds: str) -> list[Any]:
    found = [pytest.param(one, id=one["metadata"]["name"]) for one in objects() if one["kind"] in kinds]
    assert found
    return found


def wrong_fields(value: Any, kind: str, path: str) -> Iterator[str]:
    """Fields that the API does not have, by the official client's own types."""
    if inner := re.fullmatch(r"list\[(.*)\]", kind):
        if not isinstance(value, list):
            yield f"{path}: not a list"
            return
        for number, item in enumerate(value):
            yield from wrong_fields(item, inner[1], f"{path}[{number}]")
    elif inner := re.fullmatch(r"dict\(str, (.*)\)", kind):
        for key, item in value.items():
            yield from wrong_fields(item, inner[1], f"{path}.{key}")
    elif (cls := getattr(kubernetes.client, kind, None)) is not None:
        fields = {cls.attribute_map[name]: typed for name, typed in cls.openapi_types.items()}
        for key, item in value.items():
            if key not in fields:
                yield f"{path}.{key}: no such field"
            else:
                yield from wrong_fields(item, fields[key], f"{path}.{key}")
    elif kind in ("str", "int", "bool") and type(value).__name__ != kind:
        yield f"{path}: {value!r} is no {kind}"


@pytest.mark.parametrize("one", of_kind(*{one["kind"] for one in objects()}))
def test_every_field_of_a_manifest_is_one_that_the_api_knows(one):
    name = f"V1{one['kind']}"
    assert hasattr(kubernetes.client, name)
    assert list(wrong_fields(one, name, one["kind"])) == []
    assert one["kind"] in ("Namespace", "ClusterRole", "ClusterRoleBinding") or (
        one["metadata"]["namespace"] == "llmgw"
    )


@pytest.mark.parametrize("one", of_kind("Deployment", "Job"))
def test_every_pod_runs_as_nobody_on_a_root_that_cannot_be_written(one):
    pod = one["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is (one["metadata"]["name"] == "llmgw-admin-sync")
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "privileged": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"requests", "limits"} == set(container["resources"])
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
    labels = one["spec"]["template"]["metadata"]["labels"]
    assert one["spec"].get("selector", {}).get("matchLabels", labels) == labels


def test_selectors_of_service_budget_and_policies_meet_pods():
    pods = [
        o["spec"]["template"]["metadata"]["labels"] for o in objects() if o["kind"] in ("Deployment", "Job")
    ]
    wanted = [o["spec"]["selector"] for o in objects() if o["kind"] == "Service"]
    wanted += [o["spec"]["selector"]["matchLabels"] for o in objects() if o["kind"] == "PodDisruptionBudget"]
    wanted += [o["spec"]["podSelector"]["matchLabels"] for o in objects() if o["kind"] == "NetworkPolicy"]
    assert len(wanted) == 7
    for labels in wanted:
        assert any(labels.items() <= pod.items() for pod in pods), labels


def test_the_rights_of_the_sync_are_those_that_its_page_asks_for():
    page = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    block = page[page.index("### Rights") :].split("```")[1].removeprefix("yaml\n")
    rights = (ROOT / "deploy" / "kubernetes" / "rights.yaml").read_text(encoding="utf-8")
    assert list(yaml.safe_load_all(rights)) == list(yaml.safe_load_all(block))


def test_every_setting_that_a_deployment_gives_is_one_of_the_table():
    names = {name for service in DESK_SERVICES.values() for name in service["environment"]}
    names |= set(next(one for one in objects() if one["kind"] == "ConfigMap")["data"])
    example = (ROOT / "deploy" / "systemd" / "environment.example").read_text(encoding="utf-8")
    names |= set(re.findall(r"^#?(\w+)=", example, re.MULTILINE))
    for unit in UNITS:
        lines = re.findall(r"^Environment=(.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE)
        names |= {pair.split("=")[0] for line in lines for pair in line.split()}
    assert {name for name in names if not name.startswith("PYTHON")} - KNOWN == set()
    assert len(names) > 12


def test_all_parts_are_told_the_same_as_of_whether_a_cluster_is_followed():
    (shared,) = {repr(service["environment"]) for service in DESK_SERVICES.values()}
    assert "'KUBERNETES': '${KUBERNETES:-}'" in shared
    assert all("kubeconfig" in service["secrets"] for service in DESK_SERVICES.values())
    config = next(one for one in objects() if one["kind"] == "ConfigMap")
    assert config["data"]["KUBERNETES"] == "in-cluster"
    own = {}
    for one in objects():
        if one["kind"] in ("Deployment", "Job"):
            (container,) = one["spec"]["template"]["spec"]["containers"]
            assert container["envFrom"] == [{"configMapRef": {"name": config["metadata"]["name"]}}]
            if "env" in container:
                own[container["name"]] = {variable["name"] for variable in container["env"]}
    assert own == {"web": {"POD_IP", "ALLOWED_HOSTS"}}  # each pod is scraped by its address
    for unit in UNITS:
        assert "EnvironmentFile=/etc/llmgw-admin/environment\n" in unit.read_text(encoding="utf-8")


def test_compose_hands_on_every_setting_that_may_stand_in_its_env_file():
    environment = COMPOSE["services"]["web"]["environment"]
    fixed = {"DATA_DIR", "PORT", "DEBUG", "KUBECONFIG", "ENDPOINT_KEYS_DIR", "ENDPOINT_KEY_<NAME>"}
    fixed |= {name for name, setting in SETTINGS.items() if setting.secret}
    for name in set(SETTINGS) - fixed:
        assert environment[name].startswith(f"${{{name}:-"), name
    folder = "./deploy/compose/secrets/endpoint-keys:/run/secrets/endpoint-keys:ro"
    assert environment["ENDPOINT_KEYS_DIR"] == "/run/secrets/endpoint-keys"
    assert all(folder in service["volumes"] for service in DESK_SERVICES.values())


def test_the_target_of_systemd_migrates_before_its_parts_start():
    folder = ROOT / "deploy" / "systemd"
    target = (folder / "llmgw-admin.target").read_text(encoding="utf-8")
    assert "Wants=llmgw-admin-migrate.service\n" in target
    parts = [unit for unit in UNITS if unit.name != "llmgw-admin-migrate.service"]
    assert len(parts) == 3
    for part in parts:
        text = part.read_text(encoding="utf-8")
        assert "PartOf=llmgw-admin.target\n" in text  # restarted with it
        assert re.search(r"^After=.*\bllmgw-admin-migrate\.service\b", text, re.MULTILINE), part.name
        # One that crashed is started again without it.
        assert not re.search(r"^(Wants|Requires)=.*migrate", text, re.MULTILINE), part.name


def test_every_queue_has_its_worker_everywhere():
    assert {queue.name for queue in settings.CELERY_TASK_QUEUES} >= QUEUES
    commands = [service["command"] for service in DESK_SERVICES.values() if "command" in service]
    assert {queue for command in commands for queue in queues(command)} == QUEUES
    pods = [o["spec"]["template"]["spec"]["containers"][0] for o in objects() if o["kind"] == "Deployment"]
    assert {queue for pod in pods for queue in queues(pod["command"])} == QUEUES
    target = (ROOT / "deploy" / "systemd" / "llmgw-admin.target").read_text(encoding="utf-8")
    assert {"desk", "measuring"} == set(re.findall(r"worker@(\w+)\.service", target))


def queues(command: list[str]) -> list[str]:
    return command[command.index("-Q") + 1].split(",") if "-Q" in command else []


def test_every_service_of_compose_is_confined_and_its_secrets_are_files():
    for name, service in COMPOSE["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert set(service["secrets"]) <= set(COMPOSE["secrets"]), name
    assert {service["user"] for service in DESK_SERVICES.values()} == {"10001:10001"}
    assert COMPOSE["services"]["web"]["ports"] == ["127.0.0.1:${PORT:-8000}:8000"]
    assert COMPOSE["networks"]["inside"] == {"internal": True}


def test_the_secrets_of_compose_are_made_once_and_fit_the_settings(tmp_path, monkeypatch):
    script = shutil.copy(ROOT / "deploy" / "compose" / "make-secrets", tmp_path)
    for said in (7, 0):  # lines; what is there stays
        done = subprocess.run([script], capture_output=True, text=True, check=True)
        assert done.stderr.count("\n") == said
    made = {path.name: path for path in (tmp_path / "secrets").iterdir()}
    assert set(made) == set(COMPOSE["secrets"]) | {"endpoint-keys"}
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    password = made["postgres_password"].read_text().strip()
    for setting, secret in (("DATABASE_URL", "database_url"), ("CELERY_BROKER_URL", "broker_url")):
        monkeypatch.delenv(setting, raising=False)
        monkeypatch.setenv(f"{setting}_FILE", str(made[secret]))
        assert given.url(setting, ("postgresql", "redis")) == made[secret].read_text().strip()
    assert f":{password}@database/" in made["database_url"].read_text()
    assert len(made["secret_key"].read_text().strip()) == 128


def test_what_an_operator_brings_is_made_readable_for_the_containers(tmp_path):
    script = shutil.copy(ROOT / "deploy" / "compose" / "make-secrets", tmp_path)
    subprocess.run([script], capture_output=True, check=True)
    brought = [tmp_path / "secrets" / "kubeconfig", tmp_path / "secrets" / "endpoint-keys" / "llama"]
    for path in brought:
        path.unlink(missing_ok=True)
        path.write_text("brought\n")
        path.chmod(0o600)  # as kubectl writes it
    subprocess.run([script], capture_output=True, check=True)
    for path in brought:
        assert (path.read_text(), path.stat().st_mode & 0o777) == ("brought\n", 0o444)
    assert brought[1].parent.stat().st_mode & 0o777 == 0o755


def test_prometheus_scrapes_each_web_pod_by_itself(tmp_path):
    configuration = yaml.safe_load((ROOT / "deploy/prometheus/kubernetes.yml").read_text(encoding="utf-8"))
    (job,) = configuration["scrape_configs"]
    assert job["job_name"] == "llmgw-admin"  # alerts name it
    (found,) = job.pop("kubernetes_sd_configs")  # not every build of promtool knows it
    assert (found["role"], found["namespaces"]) == ("pod", {"names": ["llmgw"]})
    wanted = dict(pair.split("=") for pair in found["selectors"][0]["label"].split(","))
    web = next(one.values[0] for one in of_kind("Deployment") if one.id == "llmgw-admin-web")
    assert wanted == web["spec"]["selector"]["matchLabels"]
    (tmp_path / "rest.yml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
    code, said = lint("promtool", "check", "config", "--syntax-only", str(tmp_path / "rest.yml"))
    assert code == 0, said


def test_the_image_has_no_secret_and_no_root():
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    assert "USER 10001:10001" in lines
    copied = {
        word for line in lines if line.startswith("COPY ") and "--from" not in line for word in line.split()
    }
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in ignored  # nothing is sent but what is named
    allowed = {line[1:] for line in ignored if line.startswith("!")}
    assert {"manage.py", "llmgw_admin", "sizing", "templates", "requirements.txt"} <= allowed & copied
    assert all((ROOT / name).exists() for name in allowed)


def test_the_health_check_of_the_container_asks_the_web_server(tmp_path):
    command = [sys.executable, str(ROOT / "deploy" / "container" / "healthy.py")]
    environment = {"PORT": "1", "ALLOWED_HOSTS": "desk.example.com"}  # nothing listens there
    done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=30)
    assert (done.returncode, done.stderr) == (1, b"")


def lint(tool: str, *arguments: str) -> tuple[int, str]:
    """The exit code of a linter and what it says. Skipped where there is no such program."""
    beside = Path(sys.executable).parent / tool
    program = str(beside) if beside.exists() else shutil.which(tool)
    if program is None:
        pytest.skip(f"there is no {tool} on this machine")
    done = subprocess.run(
        [program, *arguments],
        cwd=ROOT,
        env=os.environ | {"SYSTEMD_PAGER": "", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


def test_hadolint_has_nothing_to_say_of_the_dockerfile():
    assert lint("hadolint", "Dockerfile") == (0, "")


def test_compose_lint_finds_nothing_of_weight():
    code, said = lint("compose-lint", "compose.yaml")
    assert code == 0, said


def test_yamllint_has_nothing_to_say_of_the_manifests():
    assert lint("yamllint", "--strict", "compose.yaml", "deploy/kubernetes", "deploy/prometheus") == (0, "")


def test_shellcheck_has_nothing_to_say_of_the_scripts():
    scripts = [str(path) for path in sorted((ROOT / "script").iterdir())]
    others = [".ci/run", "deploy/compose/make-secrets", "deploy/systemd/desk"]
    assert lint("shellcheck", "--external-sources", *others, *scripts) == (0, "")


def test_systemd_takes_the_units(tmp_path):
    """With programs that exist here in place of those of an installation."""
    for path in (ROOT / "deploy" / "systemd").glob("llmgw-admin*"):
        text = path.read_text(encoding="utf-8").replace("/opt/llmgw-admin/.venv/bin", "/bin")
        text = re.sub(r"/bin/(gunicorn|celery|python)\b", "/bin/true", text)
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    units = [str(path) for path in sorted(tmp_path.iterdir())]
    assert len(units) == 5
    assert lint("systemd-analyze", "verify", "--man=no", *units) == (0, "")
