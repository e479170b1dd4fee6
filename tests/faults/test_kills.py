"""kill -9 of everything, of the embedded PostgreSQL, of one worker: always while people sign in."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.faults import (
    PEOPLE,
    ROUNDS,
    SLACK,
    add_people,
    family,
    is_alive,
    kill,
    leaked,
    logs,
    open_folder,
    ports_of,
    postmaster,
    seconds_since,
    serving,
)
from tests.kit.load import LOGIN, Connection, Load, rejected_tokens
from tests.kit.server import Server, clean_environment, until

WORKER_BACK_S = 2.0
SETTLED_S = 5.0  # one that dies younger than this is followed a little later
REFUSED_S = 2.0
RECOVERED_S = 5.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """With its own PostgreSQL. Each test leaves it running."""
    with open_folder() as folder, serving(folder) as server:
        add_people(server)
        yield server


def test_killed_whole_during_writes_it_starts_again_and_nothing_acknowledged_is_lost(server: Server) -> None:
    acknowledged: list[str] = []
    secrets: set[str] = set()
    added = 0
    began = time.monotonic()
    assert user_was_added(server, "first@example.com", begin_to_add_user(server, "first@example.com"))
    adding_takes = seconds_since(began)
    for number in range(ROUNDS):
        login = f"added{number}@example.com"
        with Load(server.base_url, PEOPLE) as load:
            load.wait_for(5)
            adding = begin_to_add_user(server, login)
            time.sleep(random.uniform(0.7, 1.2) * adding_takes)  # by then it may be done, or not
            kill_whole(server)
        began = time.monotonic()
        server.start()
        started = seconds_since(began)
        journal = load.journal
        assert journal.statuses() - {503} == {200}  # a worker may outlive the database by an instant
        assert rejected_tokens(server.base_url, journal.tokens) == []
        told = user_was_added(server, login, adding)
        print(f"round {number + 1}: {journal.count()}, user added: {told}, started again in {started:.2f} s")
        added += told
        acknowledged += journal.tokens
        secrets |= journal.secrets
    assert rejected_tokens(server.base_url, acknowledged) == []
    assert leaked(logs(server), secrets) == []
    print(f"{ROUNDS} rounds, {len(acknowledged)} logins and {added} new users acknowledged, none lost")


def kill_whole(server: Server) -> None:
    """The supervisor first, so that nobody brings anybody back; then whoever is left, until nobody is."""
    assert server.process is not None
    everybody = family(server)
    kill([server.process.pid])
    kill(everybody)
    server.stop()
    while left := {pid for pid in everybody if is_alive(pid)}:
        kill(left)
        time.sleep(0.01)


def begin_to_add_user(server: Server, login: str) -> subprocess.Popen[str]:
    adding = subprocess.Popen(
        [sys.executable, "-m", "sso", "user", "add", login, "--password-stdin"],
        env=clean_environment(**server.settings),
        cwd=server.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert adding.stdin is not None
    adding.stdin.write("password of an added one\n")
    adding.stdin.flush()
    return adding


def user_was_added(server: Server, login: str, adding: subprocess.Popen[str]) -> bool:
    """Whether it was acknowledged. Then they are there; else wholly there or not at all."""
    said, complaint = adding.communicate(timeout=60)
    with Connection(server.base_url) as connection:
        answer = connection.ask("POST", LOGIN, {"login": login, "password": "password of an added one"})
    if adding.returncode == 0:
        assert "user_id" in said
        assert answer.status == 200
        return True
    assert adding.returncode == 1
    assert complaint.startswith("sso: ")
    assert complaint.count("\n") == 1
    assert answer.status in (200, 401)
    return False


def test_embedded_postgres_killed_is_503_meanwhile_and_back_by_itself(server: Server) -> None:
    workers = server.workers()
    for _ in range(max(1, ROUNDS // 3)):
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
        time.sleep(1)  # is it over?
    journal = load.journal
    refused = journal.answered(503)
    recovered = max(entry.ended for entry in refused) - killed
    print(f"{journal.count()}, slowest {journal.slowest():.2f} s, all well after {recovered:.2f} s")
    assert journal.statuses() == {200, 503}
    assert journal.broken() == []
    assert all(entry.retry_after.isdigit() for entry in refused)
    assert journal.slowest() < REFUSED_S * SLACK
    assert recovered < RECOVERED_S * SLACK
    assert rejected_tokens(server.base_url, journal.tokens) == []
    assert leaked(logs(server), journal.secrets) == []


def test_one_worker_killed_fails_its_own_requests_only_and_is_back(server: Server) -> None:
    born = dict.fromkeys(server.workers(), time.monotonic() - SETTLED_S)
    for _ in range(ROUNDS):
        victim, other = sorted(server.workers(), key=lambda pid: born[pid])
        time.sleep(max(0.0, SETTLED_S - seconds_since(born[victim])))
        born[kill_worker(server, victim, other)] = time.monotonic()


def kill_worker(server: Server, victim: int, other: int) -> int:
    """Kill one of two while both are busy; who came in its place."""
    with Load(server.base_url, PEOPLE) as load:
        load.wait_for(20)
        assert until(lambda: ports_of(victim))
        os.kill(victim, signal.SIGSTOP)  # so that it takes no other connection while we look
        its_own = ports_of(victim)
        killed = time.monotonic()
        kill([victim])
        newcomers = until(lambda: sorted(set(server.workers()) - {victim, other}))
        assert newcomers, "nobody came"
        back = until_it_answers(server, newcomers[0]) - killed
        time.sleep(0.3)
    journal = load.journal
    print(f"{journal.count()}, it held {len(its_own)} connections, another was there after {back:.2f} s")
    assert journal.statuses() == {200}
    assert {entry.port for entry in journal.broken()} <= its_own
    assert len(journal.broken()) <= len(its_own)
    assert back < WORKER_BACK_S * SLACK
    assert sorted(server.workers()) == sorted([newcomers[0], other])
    assert rejected_tokens(server.base_url, journal.tokens) == []
    return int(newcomers[0])


def until_it_answers(server: Server, worker: int) -> float:
    """When a request first came to this worker and was answered."""
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
    pytest.fail("the new worker gets no connection")
