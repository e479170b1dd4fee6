"""A PostgreSQL that is not ours goes away, comes back, hangs up on us, refuses to write: what people notice of it."""

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
    SLACK,
    descendants,
    is_alive,
    kill,
    leaked,
    logs,
    open_folder,
    people_document,
    seconds_since,
    serving,
    sql,
)
from tests.kit.load import KEYS, LOGIN, Answer, Connection, Load, rejected_tokens
from tests.kit.server import Server, until

REFUSED_S = 2.0
RECOVERED_S = 5.0
SCAN_S = 5.0  # every worker looks again this often, whatever it hears
OURS = "FROM pg_stat_activity WHERE application_name = 'sso'"
LISTENERS = f"SELECT array_agg(pid ORDER BY pid) {OURS} AND query ILIKE 'LISTEN%'"


class Setup(NamedTuple):
    server: Server
    database: embedded.Embedded

    @property
    def dsn(self) -> str:
        return self.database.dsn()


@pytest.fixture(scope="module")
def setup() -> Iterator[Setup]:
    """Two workers and a PostgreSQL of which they know the address only. Each test leaves both running."""
    with open_folder() as folder:
        database = embedded.join(folder / "elsewhere")
        try:
            with serving(folder, SSO_DATABASE_URL=database.dsn()) as server:
                server.apply(people_document())
                yield Setup(server, database)
        finally:
            database.close()


def test_gone_is_503_and_back_is_recovered_without_a_restart(setup: Setup) -> None:
    workers = setup.server.workers()
    for _ in range(max(1, ROUNDS // 3)):
        go_and_come_back(setup)
    assert setup.server.workers() == workers


def go_and_come_back(setup: Setup) -> None:
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
        assert ask(server, "/readyz").status == 503
        assert ask(server, "/readyz").retry_after.isdigit()
        assert ask(server, "/login").status == 200  # the form needs nothing
        returns = time.monotonic()
        database.ensure()
        back = time.monotonic()
        load.wait_for(20, since=back)
        assert until(lambda: ask(server, "/readyz").status == 200)  # of all workers
        time.sleep(1)  # is it over?
    journal = load.journal
    refused = journal.answered(503)
    meanwhile = [entry for entry in journal.entries if gone < entry.began and entry.ended < returns]
    recovered = max(0.0, max(entry.ended for entry in refused) - back)
    print(f"{journal.count()}, slowest {journal.slowest():.2f} s, all well {recovered:.2f} s after its return")
    assert journal.statuses() == {200, 503}
    assert journal.broken() == []
    assert all(entry.status == (200 if entry.what == "keys" else 503) for entry in meanwhile)
    assert {entry.what for entry in meanwhile} >= {"keys", "password"}
    assert all(entry.retry_after.isdigit() for entry in refused)
    assert journal.slowest() < REFUSED_S * SLACK
    assert recovered < RECOVERED_S * SLACK
    assert rejected_tokens(server.base_url, journal.tokens) == []
    assert leaked(logs(server), journal.secrets) == []


def test_hanging_is_503_within_two_seconds_and_recovers_by_itself(setup: Setup) -> None:
    server, database = setup
    workers = server.workers()
    postmaster = database.pid()
    assert postmaster is not None
    with Load(server.base_url, PEOPLE) as load:
        load.wait_for(20)
        everybody = descendants({postmaster})
        kill(everybody, signal.SIGSTOP)
        try:
            hangs = time.monotonic()
            time.sleep(6)
            assert ask(server, "/healthz").status == 200
            assert ask(server, "/login").status == 200
        finally:
            kill(everybody, signal.SIGCONT)
        back = time.monotonic()
        load.wait_for(20, since=back)
        time.sleep(1)  # is it over?
    journal = load.journal
    refused = journal.answered(503)
    meanwhile = [entry for entry in refused if hangs < entry.began and entry.ended < back]
    recovered = max(0.0, max(entry.ended for entry in refused) - back)
    print(f"{journal.count()}, slowest {journal.slowest():.2f} s, all well {recovered:.2f} s after its return")
    assert len(meanwhile) > 20  # most of them at once
    assert journal.statuses() == {200, 503}
    assert journal.broken() == []
    assert journal.slowest() < REFUSED_S * SLACK
    assert recovered < RECOVERED_S * SLACK
    assert server.workers() == workers
    assert rejected_tokens(server.base_url, journal.tokens) == []


def test_all_connections_terminated_does_no_lasting_harm(setup: Setup) -> None:
    server, _ = setup
    workers = server.workers()
    with Load(server.base_url, PEOPLE) as load:
        load.wait_for(20)
        for _ in range(ROUNDS):
            assert sql(setup.dsn, f"SELECT count(pg_terminate_backend(pid)) {OURS}") >= 2
            hung_up = time.monotonic()
            load.wait_for(30, since=hung_up)
        time.sleep(0.5)
    journal = load.journal
    harm = max((entry.ended for entry in journal.answered(503)), default=hung_up) - hung_up
    print(f"{ROUNDS} times: {journal.count()}, last harm after {harm:.2f} s")
    assert journal.statuses() <= {200, 503}
    assert journal.broken() == []
    assert harm < RECOVERED_S * SLACK
    assert server.workers() == workers
    assert rejected_tokens(server.base_url, journal.tokens) == []


def test_read_only_refuses_to_write_and_goes_on_reading(setup: Setup) -> None:
    server, _ = setup
    with httpx.Client(base_url=server.base_url, timeout=20) as browser, Load(server.base_url, PEOPLE) as load:
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
            page = browser.get("/account")  # a session is looked up, which only reads
            assert page.status_code == 200
            assert PEOPLE[0].login in page.text
            assert ask(server, LOGIN, {"token": load.journal.tokens[-1]}).status == 503  # it would make new tokens
        over = time.monotonic()
        load.wait_for(20, since=over)
        time.sleep(0.3)
    journal = load.journal
    recovered = max(0.0, max(entry.ended for entry in journal.answered(503)) - over)
    print(f"{journal.count()}, all well {recovered:.2f} s after")
    assert journal.statuses() == {200, 503}
    assert journal.broken() == []
    assert recovered < RECOVERED_S * SLACK
    assert rejected_tokens(server.base_url, journal.tokens) == []


def test_a_lost_listening_connection_is_opened_again_and_a_rotation_is_seen(setup: Setup) -> None:
    server, _ = setup
    before = listeners_afresh(setup)
    sql(setup.dsn, f"SELECT count(pg_terminate_backend(pid)) {OURS} AND pid = ANY ('{as_array(before)}')")
    hung_up = time.monotonic()
    assert until(lambda: len(listeners(setup) - before) == 2, RECOVERED_S * SLACK)
    print(f"listening again after {seconds_since(hung_up):.2f} s")
    print(f"a new key was seen after {rotation_seen(server):.2f} s")


def test_a_listening_connection_that_went_silent_is_made_up_for_by_looking_again(setup: Setup) -> None:
    server, _ = setup
    silent = listeners_afresh(setup)
    kill(silent, signal.SIGSTOP)
    try:
        took = rotation_seen(server)
    finally:
        kill(silent, signal.SIGCONT)
    print(f"a new key was seen after {took:.2f} s")
    assert took < SCAN_S * SLACK


def listeners(setup: Setup) -> set[int]:
    return set(sql(setup.dsn, LISTENERS) or ())


def listeners_afresh(setup: Setup) -> set[int]:
    """Those of both workers, young enough to be known by the first thing they said."""
    old = set(sql(setup.dsn, f"SELECT array_agg(pid) {OURS}"))
    sql(setup.dsn, f"SELECT count(pg_terminate_backend(pid)) {OURS}")
    assert until(lambda: len(listeners(setup) - old) == 2)
    return listeners(setup)


def as_array(pids: set[int]) -> str:
    return "{" + ",".join(map(str, pids)) + "}"


def rotation_seen(server: Server) -> float:
    """Seconds until both workers publish a new key."""
    kid = server.sso("key", "rotate").stdout.split()[0]
    began = time.monotonic()
    assert until(lambda: all(kid in published_by(server, worker) for worker in server.workers()), SCAN_S * SLACK)
    return seconds_since(began)


def published_by(server: Server, worker: int) -> list[str]:
    """The keys that one worker publishes: the others are held back, so that the question comes to it."""
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
