"""Commands run without the garbage collector, which slows their imports down, but not those that run for long."""

import json
from pathlib import Path

import pytest

from tests.kit import forked_program
from tests.kit.forked_program import ForkedProcess
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, clean_environment

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
    script = tmp_path / "command.py"
    script.write_text(COMMAND)
    environment = clean_environment(SSO_CLIENT_SECRET="a secret of the client")
    done = forked_program.run(arguments, env=environment, cwd=tmp_path, script=str(script))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "enabled: True"


def test_all_processes_of_the_service_enable_the_collector(postgres_server: Postgres, tmp_path: Path) -> None:
    dsn = postgres_server.fresh()
    settings = {"SSO_DATABASE_URL": dsn, "SSO_WORKERS": "1", "SSO_METRICS_BIND": "127.0.0.1:0"}
    settings |= {"SSO_BIND": "127.0.0.1:0", "SSO_DATA_DIR": str(tmp_path / "data")}
    script = tmp_path / "service.py"
    script.write_text(SERVICE)
    process = ForkedProcess(["serve"], env=clean_environment(**QUICK, **settings), cwd=tmp_path, script=str(script))
    assert process.stdout is not None
    with process.stdout as output:
        assert "ready at" in output.readline()
        process.terminate()
        assert process.wait(60) == 0
    enabled = {path.stem: path.read_text() for path in tmp_path.glob("*.collector")}
    assert enabled == dict.fromkeys(("sso-metrics-1", "sso-worker-1", "sso-handover-1"), "True")
    postgres_server.drop(dsn)
