"""SIGKILL of all processes, of the embedded PostgreSQL, or of one worker, during logins."""

import os
import random
import signal
import tempfile
import time
from collections.abc import Iterator
from typing import IO, NamedTuple

import pytest

from tests.faults import (
    PEOPLE,
    ROUNDS,
    add_people,
    family,
    is_alive,
    kill,
    leaked,
    logs,
    open_folder,
    ports_of,
    postmaster,
    rounds,
    seconds_since,
    serving,
)
from tests.kit.forked_program import ForkedProcess
from tests.kit.load import LOGIN, Connection, Load, rejected_tokens
from tests.kit.server import Server, clean_environment, until
from tests.kit.timing import SLACK

WORKER_BACK_S = 2.0
REFUSED_S = 2.0
RECOVERED_S = 5.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server with its embedded PostgreSQL. Each test leaves it running."""
    with open_folder() as folder, serving(folder) as server:
        add_people(server)
        yield server


def test_kill_of_all_processes_during_writes_loses_nothing_acknowledged(server: Server) -> None:
    acknowledged: list[str] = []
    secrets: set[str] = set()
    added = 0
    began = time.monotonic()
    assert user_was_added(server, "first@example.com", begin_to_add_user(server, "first@example.com"))
    adding_takes = seconds_since(began)
    for number in rounds():
        login = f"added{number}@example.com"
        with Load(server.base_url, PEOPLE) as load:
            load.wait_for(5)
            adding = begin_to_add_user(server, login)
            time.sleep(random.uniform(0.7, 1.2) * adding_takes)  # random on purpose: before or after the commit
            kill_all(server)
        began = time.monotonic()
        server.start()
        started = seconds_since(began)
        journal = load.journal
        assert journal.statuses() - {503} == {200}  # a worker may outlive the database for a moment
        assert rejected_tokens(server.base_url, journal.tokens) == []
        acknowledged_user = user_was_added(server, login, adding)
        print(f"round {number + 1}: {journal.count()}, user added: {acknowledged_user}, restarted in {started:.2f} s")
        added += acknowledged_user
        acknowledged += journal.tokens
        secrets |= journal.secrets
    assert rejected_tokens(server.base_url, acknowledged) == []
    assert leaked(logs(server), secrets) == []
    print(f"{ROUNDS} rounds, {len(acknowledged)} logins and {added} new users acknowledged, none lost")


def kill_all(server: Server) -> None:
    """Kills the supervisor first, so that it restarts nothing, then all other processes."""
    assert server.process is not None
    processes = family(server)
    kill([server.process.pid])
    kill(processes)
    server.stop()
    while remaining := {pid for pid in processes if is_alive(pid)}:
        kill(remaining)
        time.sleep(0.01)


class Adding(NamedTuple):
    """A command that adds a user."""

    process: ForkedProcess
    errors: IO[bytes]


def begin_to_add_user(server: Server, login: str) -> Adding:
    command = ["user", "add", login, "--password-stdin"]
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by user_was_added
    with tempfile.TemporaryFile() as password:
        password.write(b"password of a new user\n")
        password.seek(0)
        environment = clean_environment(**server.settings)
        return Adding(ForkedProcess(command, env=environment, cwd=server.folder, stdin=password, stderr=errors), errors)


def user_was_added(server: Server, login: str, adding: Adding) -> bool:
    """Returns whether the command acknowledged the user. An acknowledged user can log in."""
    code = adding.process.wait(60)
    with adding.errors as errors:
        errors.seek(0)
        stderr = errors.read().decode()
    assert adding.process.stdout is not None
    with adding.process.stdout as output:
        stdout = output.read()
    with Connection(server.base_url) as connection:
        answer = connection.ask("POST", LOGIN, {"login": login, "password": "password of a new user"})
    if code == 0:
        assert "user_id" in stdout
        assert answer.status == 200
        return True
    assert code == 1
    assert stderr.startswith("sso: ")
    assert stderr.count("\n") == 1
    assert answer.status in (200, 401)
    return False


def test_killed_embedded_postgres_is_503_and_restarts(server: Server) -> None:
    workers = server.workers()
    for _ in rounds(max(1, ROUNDS // 3)):
        kill_postgres(server)
    assert server.workers() == workers


def kill_postgres(server: Server) -> None:
    with Load(server.base_url, PEOPLE) as load:
        load.wait_for(20)
        victim = postmaster(server)
        killed = time.monotonic()
        kill([victim])
        load.wait_for(1, 503, since=killed)
        assert until(lambda: postmaster(server) not in (0, victim))
        load.wait_for(20, since=time.monotonic())
        load.wait_for(50, since=time.monotonic())  # no further failures
    journal = load.journal
    refused = journal.answered(503)
    recovered = max(entry.ended for entry in refused) - killed
    print(f"{journal.count()}, slowest {journal.slowest():.2f} s, recovered after {recovered:.2f} s")
    assert journal.statuses() == {200, 503}
    assert journal.broken() == []
    assert all(entry.retry_after.isdigit() for entry in refused)
    assert journal.slowest() < REFUSED_S * SLACK
    assert recovered < RECOVERED_S * SLACK
    assert rejected_tokens(server.base_url, journal.tokens) == []
    assert leaked(logs(server), journal.secrets) == []


def test_embedded_postgres_that_cannot_be_started_is_logged_once() -> None:
    """It is tried several times a second, for as long as the disk is full."""
    with open_folder() as folder, serving(folder) as server:
        home = folder / "data/postgres"
        log, settings = home / "postgres.log", home / "data/postgresql.conf"
        usual, refused = settings.read_text(), log.read_text().count("contains errors")
        settings.write_text("no_such_setting = 1\n")
        kill([postmaster(server)])
        assert until(lambda: log.read_text().count("contains errors") >= refused + 3)
        settings.write_text(usual)
        assert until(lambda: server.log_events("embedded_postgres.restarted"))
        for event in ("stopped", "start_failed", "restarted"):
            assert len(server.log_events(f"embedded_postgres.{event}")) == 1, event
        with server.client() as client:
            assert until(lambda: client.get("/readyz").status_code == 200)


def test_killed_worker_fails_only_own_ports_requests_and_is_replaced(server: Server) -> None:
    """Each kill hits the newest worker: one that had been ready is replaced at once, however often that happens."""
    other, victim = server.workers()
    for _ in rounds(3 * ROUNDS if ROUNDS > 1 else 2):
        victim = kill_worker(server, victim, other)


def kill_worker(server: Server, victim: int, other: int) -> int:
    """Kills one of two busy workers and returns the pid of its replacement."""
    with Load(server.base_url, PEOPLE) as load:
        load.wait_for(20)
        assert until(lambda: ports_of(victim))
        os.kill(victim, signal.SIGSTOP)  # so that it accepts no connection meanwhile
        own_ports = ports_of(victim)
        killed = time.monotonic()
        kill([victim])
        replacements = until(lambda: sorted(set(server.workers()) - {victim, other}))
        assert replacements, "the worker was not replaced"
        back = until_worker_answers(server, replacements[0]) - killed
        load.wait_for(20, since=time.monotonic())
    journal = load.journal
    print(f"{journal.count()}, {len(own_ports)} connections lost, replaced after {back:.2f} s")
    assert journal.statuses() == {200}
    assert {entry.port for entry in journal.broken()} <= own_ports
    assert len(journal.broken()) <= len(own_ports)
    assert back < WORKER_BACK_S * SLACK
    assert sorted(server.workers()) == sorted([replacements[0], other])
    assert rejected_tokens(server.base_url, journal.tokens) == []
    return int(replacements[0])


def until_worker_answers(server: Server, worker: int) -> float:
    """Returns the time when this worker first answered a request."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        connections = [Connection(server.base_url) for _ in range(4)]
        try:
            for connection in connections:
                assert connection.ask("GET", "/healthz").status == 200
            if {connection.port for connection in connections} & ports_of(worker):
                return time.monotonic()
        finally:
            for connection in connections:
                connection.close()
        time.sleep(0.05)
    pytest.fail("the new worker gets no connection")
