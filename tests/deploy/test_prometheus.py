"""The Prometheus configuration, the alert rules and the Grafana dashboard, tried with a real Prometheus."""

import json
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import sso
from tests.deploy.proxies import DEPLOY, adapted, installed
from tests.kit.game import BASE, Game
from tests.kit.ports import free_port
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running, until

pytestmark = pytest.mark.skipif(
    not installed("prometheus"), reason="prometheus is not installed: run scripts/deploy-check"
)

DASHBOARD = json.loads((DEPLOY / "grafana" / "sso.json").read_text())
SOURCE = Path(sso.__file__).parent
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


class Prometheus:
    def __init__(self, server: Server, url: str) -> None:
        self.server = server
        self.http = httpx.Client(base_url=url, timeout=60)

    def get(self, path: str, **parameters: str) -> Any:
        answer = self.http.get(f"/api/v1/{path}", params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def value(self, expression: str) -> list[Any]:
        return list(self.get("query", query=expression)["result"])


@pytest.fixture(scope="module")
def prometheus(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    metrics = f"127.0.0.1:{free_port()}"
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_METRICS_BIND": metrics}
    settings["SSO_SLOW_STATEMENT_MS"] = "1"
    with running(folder, **settings) as server, StartedPrometheus(folder, server, metrics) as prometheus:
        yield prometheus


class StartedPrometheus:
    """A Prometheus with the configuration of ``deploy/`` that scrapes every second."""

    def __init__(self, folder: Path, server: Server, metrics: str) -> None:
        replacements = {"127.0.0.1:9100": metrics, "interval: 15s": "interval: 1s"}
        (folder / "prometheus.yml").write_text(adapted("prometheus/prometheus.yml", replacements))
        (folder / "alerts.yml").write_text((DEPLOY / "prometheus" / "alerts.yml").read_text())
        address = f"127.0.0.1:{free_port()}"
        self._prometheus = Prometheus(server, f"http://{address}")
        self._log = folder / "prometheus.log"
        self._command = [
            str(installed("prometheus")),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={address}",
        ]

    def __enter__(self) -> Prometheus:
        with self._log.open("w") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        assert until(self._answers, 60), self._log.read_text()
        return self._prometheus

    def __exit__(self, *_: object) -> None:
        self._prometheus.http.close()
        self._process.terminate()
        self._process.wait(60)

    def _answers(self) -> bool:
        try:
            return self._prometheus.http.get("/-/ready").status_code == 200
        except httpx.TransportError:
            return False


def test_prometheus_scrapes_the_service(prometheus: Prometheus) -> None:
    for _ in range(3):
        httpx.get(f"{prometheus.server.base_url}/login", timeout=60)
    selector = 'sso_request_seconds_count{job="sso", route="/login", status="200"}'
    (sample,) = until(lambda: prometheus.value(selector))
    assert sample["metric"]["method"] == "GET"
    assert prometheus.value('up{job="sso"}')[0]["value"][1] == "1"


def test_prometheus_has_the_gauges_of_the_service(prometheus: Prometheus) -> None:
    assert until(lambda: value_of(prometheus, 'sum(sso_database_circuit_open{job="sso"})') == 0)
    assert value_of(prometheus, 'sum(sso_sockets{job="sso"})') == 0
    with Game(prometheus.server) as game:
        gsid = game.register().gsid
        host, _, port = prometheus.server.base_url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), source_address=(game.address, 0)) as poll:
            body = f'{{"gsid":"{gsid}"}}'
            head = f"POST {BASE}/getGsidResult HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
            poll.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            assert until(lambda: value_of(prometheus, 'sum(sso_held_polls{job="sso"})') == 1)


def test_prometheus_counts_slow_statements_by_name(prometheus: Prometheus) -> None:
    def counted() -> list[str]:
        httpx.post(
            f"{prometheus.server.base_url}/proxy/api/login", json={"login": "nobody", "password": "x"}, timeout=60
        )
        samples = prometheus.value('sso_database_slow_statements_total{job="sso"} > 0')
        return [sample["metric"]["statement"] for sample in samples]

    assert until(lambda: [name for name in counted() if re.fullmatch(r"accounts\.[\w.]+\.[A-Z_]+", name)])


def value_of(prometheus: Prometheus, expression: str) -> float | None:
    samples = prometheus.value(expression)
    return float(samples[0]["value"][1]) if samples else None


def test_prometheus_loads_every_alert_rule(prometheus: Prometheus) -> None:
    until(lambda: all(rule["lastEvaluation"] > "0002" for rule in rules(prometheus)))
    assert {rule["name"] for rule in rules(prometheus)} == set(
        re.findall(r"alert: (\w+)", (DEPLOY / "prometheus" / "alerts.yml").read_text())
    )
    assert {rule["health"] for rule in rules(prometheus)} == {"ok"}


def rules(prometheus: Prometheus) -> list[dict[str, Any]]:
    return [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_prometheus_evaluates_every_expression_of_the_dashboard(prometheus: Prometheus, expression: str) -> None:
    prometheus.value(expression.replace("$job", "sso").replace("$__rate_interval", "1m"))


def test_metrics_and_routes_of_rules_and_dashboard_exist() -> None:
    text = "\n".join([*EXPRESSIONS, (DEPLOY / "prometheus" / "alerts.yml").read_text()])
    used = set(re.findall(r"\bsso_\w+", text))
    assert used == {
        "sso_request_seconds_count",
        "sso_request_seconds_bucket",
        "sso_held_polls",
        "sso_sockets",
        "sso_database_circuit_open",
        "sso_database_slow_statements_total",
        "sso_database_pool_busy",
        "sso_database_pool_size",
        "sso_database_pool_waiting",
        "sso_logins_total",
        "sso_tokens_issued_total",
        "sso_permission_checks_total",
        "sso_throttled_requests_total",
        "sso_deliveries_total",
        "sso_mail_queue",
        "sso_mail_queue_oldest_seconds",
        "sso_background_task_failures_total",
    }
    source = "".join(path.read_text() for path in SOURCE.rglob("*.py"))
    for route in {route for routes in re.findall(r'route=~?"([^"]+)"', text) for route in routes.split("|")}:
        assert not route.startswith("/") or f'"{route}"' in source, f"there is no route {route}"


ALERTS = {
    "SsoDatabaseDown": ('sso_database_circuit_open{job="sso", instance="a"}', "0x4 1x10", {"instance": "a"}),
    "SsoSlowStatements": (
        'sso_database_slow_statements_total{job="sso", statement="oauth.tokens.statements.ROTATE"}',
        "0+30x30",
        {"statement": "oauth.tokens.statements.ROTATE"},
    ),
    "SsoMailsWait": ('sso_mail_queue_oldest_seconds{job="sso", instance="a"}', "0 600+60x30", {}),
    "SsoBackgroundTasksFail": (
        'sso_background_task_failures_total{job="sso", task="mail"}',
        "0 0+5x30",
        {"task": "mail"},
    ),
    "SsoDatabasePoolExhausted": (
        'sso_database_pool_waiting{job="sso", instance="a"}',
        "0 0 0 20x30",
        {"instance": "a"},
    ),
    "SsoManyFailedLogins": (
        'sso_logins_total{job="sso", method="password", result="wrong_credentials"}',
        "0 0 0+200x30",
        {},
    ),
}


@pytest.mark.parametrize("alert", ALERTS)
def test_alert_fires_only_for_values_that_last(tmp_path: Path, alert: str) -> None:
    """Evaluates the rule for invented values, one per minute. promtool reads JSON, as all JSON is YAML."""
    series, values, labels = ALERTS[alert]
    rule_file = (DEPLOY / "prometheus" / "alerts.yml").read_text()
    severity, description = re.findall(
        rf'alert: {alert}\n.*?severity: (\w+).*?description: "(.*?)"\n', rule_file, re.DOTALL
    )[0]
    firing = [{"exp_labels": {**labels, "severity": severity}, "exp_annotations": {"description": description}}]
    silent: list[dict[str, Any]] = [{"eval_time": time, "alertname": alert, "exp_alerts": []} for time in ("0m", "4m")]
    case = {
        "rule_files": [str(tmp_path / "alerts.yml")],
        "evaluation_interval": "15s",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": series, "values": values}],
                "alert_rule_test": [*silent, {"eval_time": "12m", "alertname": alert, "exp_alerts": firing}],
            }
        ],
    }
    # The summary contains the value, which depends on how promtool extrapolates rates.
    (tmp_path / "alerts.yml").write_text(re.sub(r" +summary: .*\n", "", rule_file))
    (tmp_path / "case.yml").write_text(json.dumps(case))
    for command in (["check", "rules", "alerts.yml"], ["test", "rules", "case.yml"]):
        done = subprocess.run(
            [str(installed("promtool")), *command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_alert_fires_while_the_service_does_not_answer(prometheus: Prometheus) -> None:
    """The last test: it stops the service."""
    (expression,) = (rule["query"] for rule in rules(prometheus) if rule["name"] == "SsoDown")
    assert until(lambda: prometheus.value('up{job="sso"}'))
    assert prometheus.value(expression) == []
    prometheus.server.stop()
    assert until(lambda: prometheus.value(expression))
