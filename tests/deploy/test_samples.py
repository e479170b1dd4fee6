"""The other samples of ``deploy/``: checked by the programs that read them, and against the settings."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from sso.config import CONFIG_FILE, SETTINGS, load
from tests.deploy.proxies import DEPLOY, installed

KUBERNETES = DEPLOY / "kubernetes" / "sso.yaml"
COMPOSE = DEPLOY / "docker" / "compose.yaml"


def test_samples_name_settings_that_exist() -> None:
    for path in DEPLOY.rglob("*"):
        if path.is_file() and path.suffix != ".json":
            for name in re.findall(r"\bSSO_[A-Z0-9_]+\b", path.read_text()):
                assert name in {*SETTINGS, CONFIG_FILE}, f"{path.name}: {name}"


def test_kubernetes_manifests_fit_the_schema() -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    documents = list(yaml.safe_load_all(KUBERNETES.read_text()))
    assert {document["kind"] for document in documents} >= {"Deployment", "Service", "Ingress", "ConfigMap"}
    for document in documents:
        kubernetes_validate.validate(document, "1.33", strict=True)


def test_settings_of_the_kubernetes_manifest_are_valid() -> None:
    (configuration,) = (
        document["data"] for document in yaml.safe_load_all(KUBERNETES.read_text()) if document["kind"] == "ConfigMap"
    )
    assert load(None, configuration).workers == 2


def test_settings_of_the_compose_file_are_valid() -> None:
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    assert set(services) == {"sso", "postgres", "mail"}
    assert load(None, services["sso"]["environment"]).https is False


def test_paths_in_the_dockerfile_exist() -> None:
    root = DEPLOY.parent
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", (DEPLOY / "docker" / "Dockerfile").read_text(), re.M):
        for name in line.split():
            assert (root / name).exists(), name


@pytest.mark.skipif(not installed("systemd-analyze"), reason="systemd is not installed")
def test_systemd_accepts_the_unit_and_rates_it_as_hardened(tmp_path: Path) -> None:
    unit = tmp_path / "sso.service"
    unit.write_text((DEPLOY / "systemd" / "sso.service").read_text().replace("/opt/sso/bin/sso", "/bin/true"))
    checked = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert "sso.service" not in checked.stderr, checked.stderr
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", str(unit)], capture_output=True, text=True, check=False
    )
    level = re.search(r"exposure level for sso.service: ([0-9.]+)", rated.stdout)
    assert level, rated.stdout + rated.stderr
    assert float(level[1]) < 2.5


@pytest.mark.skipif(not installed("logrotate"), reason="logrotate is not installed")
def test_logrotate_accepts_its_file(tmp_path: Path) -> None:
    path = tmp_path / "sso"
    path.write_text((DEPLOY / "logrotate" / "sso").read_text().replace("/var/log/sso", str(tmp_path)))
    path.chmod(0o644)
    command = [str(installed("logrotate")), "--debug", "--state", str(tmp_path / "state"), str(path)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert "error:" not in checked.stderr
