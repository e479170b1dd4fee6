"""Commands run without the garbage collector, which slows their imports down, but not those that run for long."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, clean_environment

REPLICA = ["replica", "--server", "http://127.0.0.1:9", "--application", "40", "--client-id", "tanks-server"]
SCRIPTED = ["play", "http://127.0.0.1:9", "--scripted", "script.json"]

# Prints whether the collector is enabled when the command begins to wait for requests.
COMMAND = """
import gc, sys, trio
from sso.cli import main
def run(*arguments):
    print("enabled:", gc.isenabled())
trio.run = run
main()
"""
# Each process of the service writes its name and whether the collector is enabled when it is ready.
SERVICE = """
import gc, os
from pathlib import Path
from sso.cli import main
from sso.serve.child_process import ReadyPipe
report = ReadyPipe.__call__
def report_collector(ready):
    name = Path("/proc/self/comm").read_text().strip()
    Path(f"{name}.collector").write_text(str(gc.isenabled()))
    report(ready)
ReadyPipe.__call__ = report_collector
main()
"""


@pytest.mark.parametrize("arguments", [REPLICA, SCRIPTED], ids=lambda arguments: arguments[0])
def test_command_that_runs_for_long_enables_the_collector(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(json.dumps({"requests": [{"path": "POST /x"}]}))
    environment = clean_environment(SSO_CLIENT_SECRET="a secret of the client")
    command = [sys.executable, "-c", COMMAND, *arguments]
    output = subprocess.check_output(command, env=environment, cwd=tmp_path, text=True)
    assert output.splitlines()[-1] == "enabled: True"


def test_all_processes_of_the_service_enable_the_collector(postgres_server: Postgres, tmp_path: Path) -> None:
    dsn = postgres_server.fresh()
    settings = QUICK | {"SSO_DATABASE_URL": dsn, "SSO_WORKERS": "1", "SSO_METRICS_BIND": "127.0.0.1:0"}
    server = Server(tmp_path, settings, program=(sys.executable, "-c", SERVICE))
    server.start()
    assert server.stop() == 0
    enabled = {path.stem: path.read_text() for path in tmp_path.glob("*.collector")}
    assert enabled == dict.fromkeys(("sso-metrics-1", "sso-worker-1", "sso-handover-1"), "True")
    postgres_server.drop(dsn)
