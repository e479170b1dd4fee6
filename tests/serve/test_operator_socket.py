"""The operator's socket: who may use it, what it serves, and that nothing else leads to it."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import orjson
import pytest
import trio
import trio.testing

from sso.cli.records.running_service import ServiceSocket, find_service_socket
from sso.core.operator_call import OperatorAnswer, OperatorCall, frame_of
from sso.db.standalone import fetch_value
from sso.serve.operator_socket import operator_listener, serve_operator
from sso.serve.server_limits import ServerLimits
from tests.kit.browser import new_user
from tests.kit.constants import changed
from tests.kit.row_locks import WAITING, locked_by_another_transaction
from tests.kit.server import QUICK, Server, running, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to act as another account")

# Connects to the socket as another account. The test opens its mode and its directory, which is the worst case.
INTRUDER = """
import os, socket, sys
os.setresuid(65534, 65534, 65534)
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    connection.sendall(sys.stdin.buffer.read())
    connection.shutdown(socket.SHUT_WR)
    print(len(connection.recv(1000)))
"""
LIST = OperatorCall("operator", "GET", "/api/admin/users")


def socket_of(server: Server) -> Path:
    return _socket_in(Path(server.settings["SSO_DATA_DIR"]))


def _socket_in(folder: Path) -> Path:
    (path,) = folder.glob("operator-*.sock")
    return path


@contextmanager
def open_to_all(*paths: Path) -> Iterator[None]:
    """Lets every account reach and change the files for a while."""
    closed = [folder for folder in paths[-1].parents if not folder.stat().st_mode & stat.S_IXOTH]
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (*paths, *closed)}
    try:
        for path in modes:
            path.chmod(0o777)
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


def send(path: Path, call: OperatorCall) -> OperatorAnswer:
    return trio.run(ServiceSocket(path).respond, call, lambda _what, _done, _total: None)


def test_only_the_account_of_the_service_may_open_the_socket(server: Server) -> None:
    mode = socket_of(server).lstat().st_mode
    assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)


def test_connection_of_another_account_is_refused(server: Server) -> None:
    path = socket_of(server)
    with open_to_all(path, path.parent):
        program = [sys.executable, "-c", INTRUDER, str(path)]
        done = subprocess.run(program, input=frame_of(LIST), capture_output=True, check=False)
    assert done.stdout in (b"0\n", b""), done.stderr  # closed without an answer
    assert server.log_events("operator_socket.connection_refused")[-1]["uid"] == 65534


def test_only_the_management_api_is_served(server: Server) -> None:
    path = socket_of(server)
    assert send(path, LIST).status == 200
    for other in ("/healthz", "/api/permissions/roles", "/api/admin/../permissions", "/api/admin", "//api/admin/users"):
        assert send(path, OperatorCall("operator", "GET", other)).status == 404, other


def test_http_is_not_answered(server: Server) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(socket_of(server)))
        connection.sendall(b"GET /api/admin/users HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with suppress(ConnectionResetError):
            assert connection.recv(1000) == b""
    assert until(lambda: "the message is too large" in refusals(server))


def refusals(server: Server) -> list[str]:
    return [entry["reason"] for entry in server.log_events("operator_socket.request_refused")]


def test_command_that_looks_whether_the_service_runs_is_no_refused_request(server: Server) -> None:
    before = refusals(server)
    server.sso("user", "list")
    with socket.socket(socket.AF_UNIX) as connection:  # answered after the connection of the command has been read
        connection.connect(str(socket_of(server)))
        connection.sendall(b"no request of this version" * 10)
        with suppress(ConnectionResetError):
            connection.recv(1000)
    assert until(lambda: len(refusals(server)) > len(before))
    assert "the connection was closed" not in refusals(server)


@pytest.mark.parametrize(
    "headers", [{}, {"Operator": "root"}, {"X-Operator": "root", "X-Forwarded-For": "127.0.0.1"}, {"operator": "root"}]
)
def test_requests_over_tcp_are_never_those_of_the_operator(server: Server, headers: dict[str, str]) -> None:
    assert httpx.get(f"{server.base_url}/api/admin/users", headers=headers).status_code == 401


async def test_connection_without_a_request_does_not_outlast_the_drain_of_the_service(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async def respond(*_: object) -> OperatorAnswer:
        raise AssertionError("there is no request")

    with operator_listener(tmp_path) as listener, socket.socket(socket.AF_UNIX) as silent:
        assert listener is not None
        silent.connect(str(_socket_in(tmp_path)))
        stop = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve_operator, listener, respond, stop)
            await trio.testing.wait_all_tasks_blocked()  # the connection is accepted
            stop.set()
            began = trio.current_time()
        assert trio.current_time() - began <= ServerLimits().drain_s


def test_failed_logins_are_stored_while_a_command_delays_the_end_of_the_service(tmp_path: Path, dsn: str) -> None:
    """The supervisor may end a worker whose command does not end."""
    constants = {"sso.serve.operator_socket.REQUEST_S": 60, "sso.accounts.history.failed_logins.INTERVAL_S": 600}
    settings = QUICK | {"SSO_DATABASE_URL": dsn} | changed(constants)
    with running(tmp_path, **settings) as server, socket.socket(socket.AF_UNIX) as silent:
        login = new_user(server)
        silent.connect(str(socket_of(server)))
        assert send(socket_of(server), LIST).status == 200  # so the silent connection is accepted, too
        form = {"login": login, "password": "a wrong password", "factor": "a-device"}
        assert httpx.post(f"{server.base_url}/proxy/api/login", json=form).status_code == 401
        assert server.process is not None
        server.process.terminate()
        count = "SELECT count(*) FROM account_events WHERE kind = 'sign_in_failed'"
        assert until(lambda: fetch_value(dsn, count) == 1)
        silent.close()
        assert server.process.wait(60) == 0


def test_service_ends_with_0_in_time_while_the_transaction_of_a_command_waits(tmp_path: Path, dsn: str) -> None:
    """The transaction waits for 30 seconds here."""
    change = ("client", "set", "shop", "--redirect-uri", "https://shop.example.com/b")
    with running(tmp_path, **QUICK, SSO_DATABASE_URL=dsn) as server, ThreadPoolExecutor(1) as threads:
        server.sso("client", "add", "shop", "--profile", "oidc", "--redirect-uri", "https://shop.example.com/a")
        row = "SELECT FROM oauth_clients WHERE client_id = 'shop' FOR UPDATE"
        with locked_by_another_transaction(dsn, row):
            command = threads.submit(server.sso, *change, check=False)
            assert until(lambda: fetch_value(dsn, WAITING))
            assert server.process is not None
            server.process.terminate()
            assert server.process.wait(60) == 0, server.log()[-3000:]
            assert command.result().returncode == 1
        assert server.log_events("process.killed") == []
        (failed,) = server.log_events("request.database_failed")
        assert failed["reason"] == "the service stops"


def test_unix_socket_of_a_proxy_gives_no_rights(tmp_path: Path, dsn: str) -> None:
    bind = tmp_path / "proxy.sock"
    settings = QUICK | {"SSO_DATABASE_URL": dsn, "SSO_BIND": f"127.0.0.1:0,unix:{bind}"}
    with running(tmp_path, **settings), httpx.Client(transport=httpx.HTTPTransport(uds=str(bind))) as proxy:
        assert proxy.get("http://localhost/api/admin/users").status_code == 401
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(bind))
            connection.sendall(frame_of(LIST))
            connection.shutdown(socket.SHUT_WR)
            assert b"200 OK" not in connection.recv(1000)


def test_audit_entry_names_the_account_of_the_command(server: Server) -> None:
    body = orjson.dumps({"login": "by-socket@example.com"})
    call = OperatorCall("ann as root", "POST", "/api/admin/users", body=body)
    assert send(socket_of(server), call).status == 201
    query = {"operation": "user.create", "limit": 1}
    audit = send(socket_of(server), OperatorCall("", "GET", "/api/admin/audit", query))
    assert orjson.loads(audit.body)["data"][0]["operator"] == "ann as root"


def test_socket_of_another_account_is_not_used(tmp_path: Path) -> None:
    """Whoever may create files in the directory must not get what commands send."""
    folder = tmp_path / "data"
    folder.mkdir()
    listen = """
import os, socket, sys, time
os.setresuid(65534, 65534, 65534)
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("ready", flush=True)
time.sleep(60)
"""
    path = folder / "operator-00000000.sock"
    program = [sys.executable, "-c", listen, str(path)]
    with open_to_all(folder), subprocess.Popen(program, stdout=subprocess.PIPE) as intruder:
        assert intruder.stdout is not None
        assert intruder.stdout.readline() == b"ready\n"
        assert find_service_socket(folder) is None
        intruder.kill()


def test_stale_socket_is_ignored_and_replaced(tmp_path: Path, dsn: str) -> None:
    data_dir = tmp_path / "data"
    data_dir.mkdir(mode=0o700)
    stale = data_dir / "operator-00000000.sock"
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(stale))
    assert find_service_socket(data_dir) is None
    with running(tmp_path, **QUICK, SSO_DATABASE_URL=dsn) as server:
        assert not stale.exists()
        assert find_service_socket(data_dir) == ServiceSocket(socket_of(server))
    assert list(data_dir.glob("operator-*.sock")) == []
