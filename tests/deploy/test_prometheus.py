"""The Prometheus configuration, the alert rules and the Grafana dashboard, tried with a real Prometheus."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import sso
from tests.deploy.proxies import DEPLOY, adapted, free_port, installed
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, running, until

pytestmark = pytest.mark.skipif(not installed("prometheus"), reason="prometheus is not installed")

DASHBOARD = json.loads((DEPLOY / "grafana" / "sso.json").read_text())
SOURCE = Path(sso.__file__).parent
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


class Prometheus:
    def __init__(self, server: Server, url: str) -> None:
        self.server = server
        self.http = httpx.Client(base_url=url, timeout=20)

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
        self._process.wait(20)

    def _answers(self) -> bool:
        try:
            return self._prometheus.http.get("/-/ready").status_code == 200
        except httpx.TransportError:
            return False


def test_prometheus_scrapes_the_service(prometheus: Prometheus) -> None:
    for _ in range(3):
        httpx.get(f"{prometheus.server.base_url}/login")
    selector = 'sso_request_seconds_count{job="sso", route="/login", status="200"}'
    (sample,) = until(lambda: prometheus.value(selector))
    assert sample["metric"]["method"] == "GET"
    assert prometheus.value('up{job="sso"}')[0]["value"][1] == "1"


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
    assert set(re.findall(r"\bsso_\w+", text)) <= {"sso_request_seconds_count", "sso_request_seconds_bucket"}
    source = "".join(path.read_text() for path in SOURCE.rglob("*.py"))
    for route in {route for routes in re.findall(r'route=~?"([^"]+)"', text) for route in routes.split("|")}:
        assert not route.startswith("/") or f'"{route}"' in source, f"there is no route {route}"


def test_alert_fires_while_the_service_does_not_answer(prometheus: Prometheus) -> None:
    """The last test: it stops the service."""
    (expression,) = (rule["query"] for rule in rules(prometheus) if rule["name"] == "SsoDown")
    assert until(lambda: prometheus.value('up{job="sso"}'))
    assert prometheus.value(expression) == []
    prometheus.server.stop()
    assert until(lambda: prometheus.value(expression), 30)
