"""The other samples of ``deploy/``: checked by the programs that read them, and against the settings."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from scripts.check_manifest import problems
from sso.config import SETTINGS, ConfigError, load
from sso.environment import CONFIG_FILE, SERVER
from tests.deploy.proxies import DEPLOY, installed

KUBERNETES = DEPLOY / "kubernetes" / "sso.yaml"
DIGEST = f"registry.example.com/sso@sha256:{'0123456789abcdef' * 4}"
VALUES = {
    "registry.example.com/sso@sha256:REPLACE_DIGEST": DIGEST,
    "REPLACE_INGRESS_NETWORK": "10.4.7.0/24",
    "REPLACE_DATABASE_NETWORK": "192.0.2.10/32",
    "REPLACE_SMTP_NETWORK": "192.0.2.25/32",
}
COMPOSE = DEPLOY / "docker" / "compose.yaml"


def test_samples_name_settings_that_exist() -> None:
    for path in DEPLOY.rglob("*"):
        if path.is_file() and path.suffix != ".json":
            for name in re.findall(r"\bSSO_[A-Z0-9_]+\b", path.read_text()):
                assert name in {*SETTINGS, CONFIG_FILE, SERVER}, f"{path.name}: {name}"


def test_kubernetes_manifests_fit_the_schema() -> None:
    kubernetes_validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed: run scripts/deploy-check"
    )
    documents = list(yaml.safe_load_all(KUBERNETES.read_text()))
    assert {document["kind"] for document in documents} >= {"Deployment", "Service", "Ingress", "ConfigMap"}
    for document in documents:
        kubernetes_validate.validate(document, "1.33", strict=True)


def filled_in() -> str:
    """The manifest with the values of an operator."""
    text = KUBERNETES.read_text()
    for name, value in VALUES.items():
        assert name in text
        text = text.replace(name, value)
    return text


def configuration(text: str) -> dict[str, str]:
    (data,) = (document["data"] for document in yaml.safe_load_all(text) if document["kind"] == "ConfigMap")
    assert isinstance(data, dict)
    return data


def service_variables(text: str) -> dict[str, str]:
    """Returns the variables that the kubelet adds to the pods for each Service, unless the manifest forbids it."""
    documents = list(yaml.safe_load_all(text))
    (pod,) = (item["spec"]["template"]["spec"] for item in documents if item["kind"] == "Deployment")
    names = [item["metadata"]["name"].upper() for item in documents if item["kind"] == "Service"]
    if not pod.get("enableServiceLinks", True):
        return {}
    return {f"{name}_PORT": "tcp://10.0.0.11:80" for name in names}


def test_settings_of_the_kubernetes_manifest_are_valid() -> None:
    text = filled_in()
    assert load(None, configuration(text) | service_variables(text)).workers == 2
    with_links = text.replace("enableServiceLinks: false", "enableServiceLinks: true")
    with pytest.raises(ConfigError, match="SSO_PORT: there is no such setting"):
        load(None, configuration(text) | service_variables(with_links))


def test_kubernetes_manifest_is_refused_until_the_operator_has_filled_it_in() -> None:
    """Digests and networks cannot be known here, and none of them has a default that trusts too much."""
    with pytest.raises(ConfigError, match="SSO_TRUSTED_PROXIES"):
        load(None, configuration(KUBERNETES.read_text()))
    reasons = "\n".join(problems(KUBERNETES.read_text()))
    for name in VALUES:
        assert name in reasons
    assert problems(filled_in()) == []


@pytest.mark.parametrize(
    ("value", "other", "reason"),
    [
        (DIGEST, "registry.example.com/sso:0.1.0", "image: registry.example.com/sso:0.1.0 has no digest"),
        (DIGEST, "registry.example.com/sso@sha256:123", "has no digest"),
        (
            VALUES["REPLACE_INGRESS_NETWORK"],
            "10.0.0.0/8",
            "SSO_TRUSTED_PROXIES: 10.0.0.0/8 has more than 65536 addresses",
        ),
        (VALUES["REPLACE_INGRESS_NETWORK"], "::/0", "SSO_TRUSTED_PROXIES: ::/0"),
        ("kind: NetworkPolicy", "kind: Service", "no NetworkPolicy"),
        ("enableServiceLinks: false", "hostNetwork: false", "enableServiceLinks must be false"),
        ("policyTypes: [Ingress, Egress]", "policyTypes: [Ingress]", "no NetworkPolicy"),
    ],
)
def test_manifest_that_trusts_too_much_is_refused(value: str, other: str, reason: str) -> None:
    text = filled_in()
    assert value in text
    assert any(reason in problem for problem in problems(text.replace(value, other)))


def test_pods_are_reached_by_the_ingress_controller_and_prometheus_only() -> None:
    (policy,) = (item["spec"] for item in yaml.safe_load_all(filled_in()) if item["kind"] == "NetworkPolicy")
    rules = {rule["ports"][0]["port"]: rule.get("from") for rule in policy["ingress"]}
    assert rules.keys() == {"http", "metrics"}
    assert all(rules.values())
    assert all(rule.get("to") for rule in policy["egress"])


def test_cluster_of_three_machines_encrypts_and_authenticates_all_connections() -> None:
    """scripts/cluster runs these files; tests/cluster tries connections without certificate or password."""
    folder = DEPLOY / "cluster"
    etcd = yaml.safe_load((folder / "etcd.yml").read_text())
    assert [value for value in etcd.values() if "http://" in str(value)] == []
    for kind in ("client", "peer"):
        assert etcd[f"{kind}-transport-security"]["client-cert-auth"] is True
    patroni = yaml.safe_load((folder / "patroni.yml").read_text())
    assert patroni["etcd3"]["protocol"] == "https"
    assert patroni["restapi"]["authentication"]["password"]
    assert patroni["restapi"]["verify_client"] == "optional"  # writing needs a certificate
    assert [rule.split()[0] for rule in patroni["postgresql"]["pg_hba"]] == ["local", *["hostssl"] * 4]
    accounts = patroni["postgresql"]["authentication"].values()
    assert len({account["password"] for account in accounts}) == 3
    assert {account["sslmode"] for account in accounts} == {"verify-full"}
    nats = (folder / "nats.conf").read_text()
    assert nats.count("tls {") == 2
    assert "verify: true" in nats
    assert "nats://" not in nats.replace("nats://routes:${NATS_ROUTE_PASSWORD}@", "")
    service = (folder / "sso.env").read_text()
    assert "sslmode=verify-full&sslrootcert=" in service
    assert "SSO_BUS_URL=tls://" in service


def test_urls_of_databases_with_a_verified_certificate_name_its_ca() -> None:
    """Without the file, the driver opens no connection."""
    texts = [path.read_text() for path in DEPLOY.rglob("*") if path.is_file()]
    urls = [url for text in texts for url in re.findall(r"postgresql://\S+sslmode=verify-full\S*", text)]
    assert len(urls) == 3
    assert all("&sslrootcert=/" in url or "&sslrootcert=${CERTIFICATES}/" in url for url in urls)


def test_settings_of_the_compose_file_are_valid() -> None:
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    assert set(services) == {"sso", "postgres", "mail"}
    service = services["sso"]
    assert load(None, service["environment"]).https is False
    on_disk = [volume.partition(":")[2] for volume in service["volumes"]]
    assert service["environment"]["TMPDIR"] in on_disk, "archives of exports may be large, and a tmpfs is memory"


def test_paths_in_the_dockerfile_exist() -> None:
    root = DEPLOY.parent
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", (DEPLOY / "docker" / "Dockerfile").read_text(), re.M):
        for name in line.split():
            assert (root / name).exists(), name


def test_log_events_of_the_alerts_are_documented() -> None:
    alerts = (DEPLOY / "prometheus" / "alerts.yml").read_text()
    descriptions = " ".join(re.findall(r"description: (.+)", alerts))
    named = set(re.findall(r"\b[a-z_]+\.[a-z_]+\b", descriptions))
    documented = re.findall(r"\* - ``([a-z_.]+)``", (DEPLOY.parent / "docs" / "log_events.rst").read_text())
    assert named == {"database.statement_was_slow", "queue.delivery_failed"}
    assert named <= set(documented)


needs_systemd = pytest.mark.skipif(
    not installed("systemd-analyze"), reason="systemd is not installed: apt-get install systemd"
)


def rating(unit: Path) -> str:
    """Returns what systemd says about the sandbox of a unit that it accepts."""
    checked = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert "sso.service" not in checked.stderr, checked.stderr
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", str(unit)], capture_output=True, text=True, check=False
    )
    return rated.stdout + rated.stderr


@needs_systemd
def test_systemd_accepts_the_unit_and_rates_it_as_hardened(tmp_path: Path) -> None:
    unit = tmp_path / "sso.service"
    unit.write_text((DEPLOY / "systemd" / "sso.service").read_text().replace("/opt/sso/bin/sso", "/bin/true"))
    rated = rating(unit)
    level = re.search(r"exposure level for sso.service: ([0-9.]+)", rated)
    assert level, rated
    assert float(level[1]) < 2.5


@needs_systemd
def test_unit_can_use_ports_below_1024_with_the_lines_that_are_commented_out(tmp_path: Path) -> None:
    """An ambient capability outside of the bounding set would keep the unit from starting."""
    unit = tmp_path / "sso.service"
    text = (DEPLOY / "systemd" / "sso.service").read_text().replace("/opt/sso/bin/sso", "/bin/true")
    unit.write_text(re.sub(r"^#(\w+=)", r"\1", text, flags=re.M))
    rated = rating(unit)
    for option in ("AmbientCapabilities=", "CapabilityBoundingSet=~CAP_NET_(BIND_SERVICE|BROADCAST|RAW)"):
        assert re.search(rf"✗ {re.escape(option)}", rated), rated


@pytest.mark.skipif(not installed("logrotate"), reason="logrotate is not installed: run scripts/deploy-check")
def test_logrotate_accepts_its_file(tmp_path: Path) -> None:
    path = tmp_path / "sso"
    path.write_text((DEPLOY / "logrotate" / "sso").read_text().replace("/var/log/sso", str(tmp_path)))
    path.chmod(0o644)
    command = [str(installed("logrotate")), "--debug", "--state", str(tmp_path / "state"), str(path)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert "error:" not in checked.stderr
