"""An external PostgreSQL stops, hangs, terminates connections or refuses writes, and then recovers."""

import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import httpx
import pytest

from sso.db import embedded
from tests.faults import (
    PEOPLE,
    ROUNDS,
    descendants,
    is_alive,
    kill,
    leaked,
    logs,
    open_folder,
    people_document,
    rounds,
    seconds_since,
    serving,
    sql,
)
from tests.kit.load import KEYS, LOGIN, Answer, Connection, Load, rejected_tokens
from tests.kit.prepared_data import join_prepared
from tests.kit.server import Server, until
from tests.kit.timing import SLACK

REFUSED_S = 2.0
RECOVERED_S = 5.0
SCAN_S = 5.0  # interval of the regular scan of every worker
SSO_CONNECTIONS = "FROM pg_stat_activity WHERE application_name LIKE 'sso%'"
LISTENERS = f"SELECT array_agg(pid ORDER BY pid) {SSO_CONNECTIONS} AND application_name = 'sso bus'"


class Setup(NamedTuple):
    server: Server
    database: embedded.Embedded

    @property
    def dsn(self) -> str:
        return self.database.dsn()


@pytest.fixture(scope="module")
def setup() -> Iterator[Setup]:
    """Two workers and a separate PostgreSQL. Each test leaves both running."""
    with open_folder() as folder:
        database = join_prepared(folder / "elsewhere")
        try:
            with serving(folder, SSO_DATABASE_URL=database.dsn(), SSO_DATABASE_TIMEOUT_S="2") as server:
                server.apply(people_document())
                yield Setup(server, database)
        finally:
            database.close()


def test_stopped_database_is_503_and_the_server_recovers_without_a_restart(setup: Setup) -> None:
    workers = setup.server.workers()
    for _ in rounds(max(1, ROUNDS // 3)):
        stop_and_restart_database(setup)
    assert setup.server.workers() == workers


def stop_and_restart_database(setup: Setup) -> None:
    server, database = setup
    with Load(server.base_url, PEOPLE) as load:
        load.wait_for(20)
        postmaster = database.pid()
        assert postmaster is not None
        kill([postmaster], signal.SIGINT)
        assert until(lambda: not is_alive(postmaster))
        gone = time.monotonic()
        load.wait_for(20, 503, since=gone)
        assert ask(server, "/healthz").status == 200
        assert ask(server, "/readyz").status == 200  # no other node could serve instead
        assert ask(server, "/readyz?database=1").status == 503
        assert ask(server, "/readyz?database=1").retry_after.isdigit()
        assert ask(server, "/login").status == 200  # the form needs no database
        returns = time.monotonic()
        database.ensure()
        back = time.monotonic()
        load.wait_for(20, since=back)
        assert until(lambda: ask(server, "/readyz?database=1").status == 200)  # on all workers
        load.wait_for(50, since=time.monotonic())  # no further failures
    journal = load.journal
    refused = journal.answered(503)
    meanwhile = [entry for entry in journal.entries if gone < entry.began and entry.ended < returns]
    recovered = max(0.0, max(entry.ended for entry in refused) - back)
    print(f"{journal.count()}, slowest {journal.slowest():.2f} s, recovered {recovered:.2f} s after its return")
    assert journal.statuses() == {200, 503}
    assert journal.broken() == []
    assert all(entry.status == (200 if entry.what == "keys" else 503) for entry in meanwhile)
    assert {entry.what for entry in meanwhile} >= {"keys", "password"}
    assert all(entry.retry_after.isdigit() for entry in refused)
    assert journal.slowest() < REFUSED_S * SLACK
    assert recovered < RECOVERED_S * SLACK
    assert rejected_tokens(server.base_url, journal.tokens) == []
    assert leaked(logs(server), journal.secrets) == []


def test_hanging_database_is_503_within_two_seconds_and_the_server_recovers(setup: Setup) -> None:
    server, database = setup
    workers = server.workers()
    postmaster = database.pid()
    assert postmaster is not None
    with Load(server.base_url, PEOPLE) as load:
        load.wait_for(20)
        processes = descendants({postmaster})
        kill(processes, signal.SIGSTOP)
        try:
            hangs = time.monotonic()
            load.wait_for(40, 503, since=hangs)
            assert ask(server, "/healthz").status == 200
            assert ask(server, "/login").status == 200
        finally:
            kill(processes, signal.SIGCONT)
        back = time.monotonic()
        load.wait_for(20, since=back)
        load.wait_for(50, since=time.monotonic())  # no further failures
    journal = load.journal
    refused = journal.answered(503)
    meanwhile = [entry for entry in refused if hangs < entry.began and entry.ended < back]
    recovered = max(0.0, max(entry.ended for entry in refused) - back)
    print(f"{journal.count()}, slowest {journal.slowest():.2f} s, recovered {recovered:.2f} s after its return")
    assert len(meanwhile) > 20  # most of them without waiting
    assert journal.statuses() == {200, 503}
    assert journal.broken() == []
    assert journal.slowest() < REFUSED_S * SLACK
    assert recovered < RECOVERED_S * SLACK
    assert server.workers() == workers
    assert rejected_tokens(server.base_url, journal.tokens) == []


def test_server_recovers_from_the_termination_of_all_connections(setup: Setup) -> None:
    server, _ = setup
    workers = server.workers()
    with Load(server.base_url, PEOPLE) as load:
        load.wait_for(20)
        for _ in rounds():
            assert sql(setup.dsn, f"SELECT count(pg_terminate_backend(pid)) {SSO_CONNECTIONS}") >= 2
            terminated = time.monotonic()
            load.wait_for(30, since=terminated)
    journal = load.journal
    recovered = max((entry.ended for entry in journal.answered(503)), default=terminated) - terminated
    print(f"{ROUNDS} times: {journal.count()}, recovered after {recovered:.2f} s")
    assert journal.statuses() <= {200, 503}
    assert journal.broken() == []
    assert recovered < RECOVERED_S * SLACK
    assert server.workers() == workers
    assert rejected_tokens(server.base_url, journal.tokens) == []


def test_read_only_database_is_503_for_writes_and_serves_reads(setup: Setup) -> None:
    server, _ = setup
    with httpx.Client(base_url=server.base_url, timeout=60) as browser, Load(server.base_url, PEOPLE) as load:
        load.wait_for(20)
        csrf = re.search(r'name="csrf" value="([^"]+)"', browser.get("/login").text)
        assert csrf is not None
        form = {**PEOPLE[0]._asdict(), "csrf": csrf[1]}
        assert browser.post("/login", data=form).status_code == 303
        with read_only(setup.dsn):
            began = time.monotonic()
            load.wait_for(20, 503, since=began)
            assert {entry.status for entry in load.journal.since(began) if entry.what == "keys"} == {200}
            assert {entry.status for entry in load.journal.since(began) if entry.what != "keys"} == {503}
            assert ask(server, "/healthz").status == 200
            page = browser.get("/account")  # reads the session only
            assert page.status_code == 200
            assert PEOPLE[0].login in page.text
            assert ask(server, LOGIN, {"token": load.journal.tokens[-1]}).status == 503  # would write new tokens
        over = time.monotonic()
        load.wait_for(30, since=over)
    journal = load.journal
    recovered = max(0.0, max(entry.ended for entry in journal.answered(503)) - over)
    print(f"{journal.count()}, recovered after {recovered:.2f} s")
    assert journal.statuses() == {200, 503}
    assert journal.broken() == []
    assert recovered < RECOVERED_S * SLACK
    assert rejected_tokens(server.base_url, journal.tokens) == []


def test_lost_listen_connection_is_reopened_and_key_rotation_is_noticed(setup: Setup) -> None:
    server, _ = setup
    before = new_listeners(setup)
    sql(setup.dsn, f"SELECT count(pg_terminate_backend(pid)) {SSO_CONNECTIONS} AND pid = ANY ('{as_array(before)}')")
    terminated = time.monotonic()
    assert until(lambda: len(listeners(setup) - before) == 2, RECOVERED_S * SLACK)
    print(f"listening again after {seconds_since(terminated):.2f} s")
    print(f"key rotation noticed after {rotation_seen(server):.2f} s")


def test_regular_scan_notices_key_rotation_despite_a_silent_listen_connection(setup: Setup) -> None:
    server, _ = setup
    silent = new_listeners(setup)
    kill(silent, signal.SIGSTOP)
    try:
        took = rotation_seen(server)
    finally:
        kill(silent, signal.SIGCONT)
    print(f"key rotation noticed after {took:.2f} s")
    assert took < SCAN_S * SLACK


def listeners(setup: Setup) -> set[int]:
    return set(sql(setup.dsn, LISTENERS) or ())


def new_listeners(setup: Setup) -> set[int]:
    """Reopens the LISTEN connections of both workers and returns their pids."""
    old = set(sql(setup.dsn, f"SELECT array_agg(pid) {SSO_CONNECTIONS}"))
    sql(setup.dsn, f"SELECT count(pg_terminate_backend(pid)) {SSO_CONNECTIONS}")
    assert until(lambda: len(listeners(setup) - old) == 2)
    return listeners(setup)


def as_array(pids: set[int]) -> str:
    return "{" + ",".join(map(str, pids)) + "}"


def rotation_seen(server: Server) -> float:
    """Rotates the key and returns the seconds until both workers publish it."""
    kid = server.sso("key", "rotate").stdout.split()[0]
    began = time.monotonic()
    assert until(lambda: all(kid in published_by(server, worker) for worker in server.workers()), SCAN_S * SLACK)
    return seconds_since(began)


def published_by(server: Server, worker: int) -> list[str]:
    """Returns the keys that one worker publishes; the others are stopped meanwhile, so that it gets the request."""
    others = set(server.workers()) - {worker}
    kill(others, signal.SIGSTOP)
    try:
        return [key["kid"] for key in ask(server, KEYS).data["keys"]]
    finally:
        kill(others, signal.SIGCONT)


def ask(server: Server, path: str, body: dict[str, str] | None = None) -> Answer:
    with Connection(server.base_url) as connection:
        return connection.ask("POST" if body else "GET", path, body)


@contextmanager
def read_only(dsn: str) -> Iterator[None]:
    sql(dsn, "ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
    try:
        yield
    finally:
        sql(dsn, "ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
