"""scripts/run: the service and the demo site, started by one command."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from scripts.run_demo import links, listen
from tests.kit.long_tests import takes_long
from tests.kit.ports import free_port
from tests.kit.server import QUICK, clean_environment, until

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "scripts.run_demo")  # what scripts/run starts when the packages are installed


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=60).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture
def environment(dsn: str, tmp_path: Path) -> dict[str, str]:
    return clean_environment(
        **QUICK,
        SSO_DATABASE_URL=dsn,
        SSO_DATA_DIR=str(tmp_path / "data"),
        SSO_BIND=f"127.0.0.1:{free_port()}",
        SSO_LOG_LEVEL="error",
        DEMO_SITE_PORT=str(free_port()),
    )


@contextmanager
def started(environment: dict[str, str]) -> "Iterator[subprocess.Popen[str]]":
    with subprocess.Popen(
        COMMAND, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()


@pytest.mark.parametrize("stop", [pytest.param("SIGTERM", marks=takes_long), "Ctrl-C"])
def test_links_are_printed_when_both_answer_and_both_stop_together(environment: dict[str, str], stop: str) -> None:
    service, site = f"http://{environment['SSO_BIND']}", f"http://127.0.0.1:{environment['DEMO_SITE_PORT']}"
    with started(environment) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().rstrip() for _ in range(9)]
        assert lines == [
            "created 9, changed 3, unchanged 1",
            f"sso is ready at {service} (1 worker, data directory {environment['SSO_DATA_DIR']})",
            "",
            f"  Admin console  {service}/console",
            f"  Account page   {service}/account",
            f"  Demo web site  {site}/",
            f"  Demo game      {ROOT}/scripts/sso play {service}    (in a second terminal)",
            "  Sign in as     demo@example.com with the password demo-password",
            "  Stop           Ctrl-C",
        ]
        assert answers(f"{service}/readyz")
        assert f"{service}/proxy/oauth/authorize" in httpx.get(f"{site}/sign-in", timeout=60).headers["Location"]
        if stop == "Ctrl-C":
            os.killpg(process.pid, signal.SIGINT)  # the terminal sends it to all processes of the group
        else:
            process.terminate()
        assert process.wait(60) == 0
        assert process.stdout.read() == ""  # the end of the output: the demo site has ended as well
    assert not answers(site)
    assert not answers(f"{service}/readyz")


def refusal(environment: dict[str, str]) -> str:
    done = subprocess.run(
        COMMAND, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )  # returns when all processes have closed the output
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


def test_taken_port_of_the_demo_site_is_reported_and_nothing_starts(environment: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", int(environment["DEMO_SITE_PORT"]))):
        assert refusal(environment) == (
            f"scripts/run: cannot listen on 127.0.0.1:{environment['DEMO_SITE_PORT']}: the address is already in use; "
            "set DEMO_SITE_PORT to another port\n"
        )
    assert not Path(environment["SSO_DATA_DIR"]).exists()


def test_taken_address_of_the_service_is_reported_and_the_demo_site_ends(environment: dict[str, str]) -> None:
    host, _, port = environment["SSO_BIND"].partition(":")
    with socket.create_server((host, int(port))):
        assert refusal(environment) == (
            f"sso: cannot listen on {environment['SSO_BIND']}: the address is already in use; "
            "set SSO_BIND to another address\n"
        )
    socket.create_server(("127.0.0.1", int(environment["DEMO_SITE_PORT"]))).close()


@pytest.mark.parametrize("port", ["0", "65536", "x"])
def test_invalid_port_of_the_demo_site_is_reported(monkeypatch: pytest.MonkeyPatch, port: str) -> None:
    monkeypatch.setenv("DEMO_SITE_PORT", port)
    with pytest.raises(SystemExit, match=r"^scripts/run: DEMO_SITE_PORT: must be a number from 1 to 65535$"):
        listen()


def test_links_lead_to_the_service_with_several_bind_addresses(environment: dict[str, str], tmp_path: Path) -> None:
    port = free_port()
    environment["SSO_BIND"] = f"unix:{tmp_path}/sso.sock,0.0.0.0:{port},127.0.0.2:{free_port()}"
    with started(environment) as process:
        assert process.stdout is not None
        account = next(filter(None, (re.search(r"Account page +(\S+)", line) for line in process.stdout)))
        assert account[1] == f"http://127.0.0.1:{port}/account"
        assert until(lambda: httpx.get(account[1], timeout=60).status_code == 303)
        process.terminate()
        assert process.wait(60) == 0
        process.stdout.read()


def test_links_use_the_base_url_and_a_unix_socket_alone_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSO_BIND", "unix:/run/sso.sock")
    assert "https://sso.example.com/account" in links("https://sso.example.com", "http://127.0.0.1:8001")
    text = links("http://localhost", "http://127.0.0.1:8001")
    assert "unix:/run/sso.sock" in text
    assert "SSO_BASE_URL" in text
    assert "http://localhost" not in text
