"""SIGTERM, SIGHUP, and two servers with one data directory: every accepted request gets a response."""

import http.client
import itertools
import json
import signal
import socket
import threading
import time
import timeit
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import argon2
import pytest

from tests.faults import (
    PEOPLE,
    ROUNDS,
    add_people,
    apply,
    descendants,
    is_alive,
    kill,
    leaked,
    logs,
    open_folder,
    people_document,
    ports_of,
    postmaster,
    rounds,
    seconds_since,
    serving,
    unread,
)
from tests.kit.load import LOGIN, Answer, Connection, Load, Person, rejected_tokens
from tests.kit.postgres import Postgres
from tests.kit.server import Server, until
from tests.kit.timing import SLACK

STOPPED_S = 10.0
REFUSED_S = 1.0
HASH_S = 0.2  # duration of one password hash on an idle core
HASH_KIB = 8192


def test_sigterm_answers_requests_in_flight_and_stops_the_database_cleanly() -> None:
    settings = {"SSO_ARGON2_TIME": str(slow_hash()), "SSO_ARGON2_KIB": str(HASH_KIB)}
    with open_folder() as folder, serving(folder, **settings) as server:
        people = PEOPLE[:4]
        apply(server, people_document(people))
        database = postmaster(server)
        visits = visits_in_flight(server, people)
        assert server.process is not None
        server.process.send_signal(signal.SIGTERM)
        signalled = time.monotonic()
        refused = until_refused(server) - signalled
        code = server.process.wait(60)
        stopped = seconds_since(signalled)
        for visit in visits:
            visit.join()
        assert any(visit.ended > signalled for visit in visits), "no request was in flight"
        answered = max(visit.ended for visit in visits) - signalled
        print(f"refusing after {refused:.2f} s, last answer after {answered:.2f} s, stopped after {stopped:.2f} s")
        assert [visit.error or visit.status for visit in visits] == [200] * 4
        assert code == 0
        assert refused < REFUSED_S * SLACK
        assert until(lambda: not is_alive(database))
        assert "database system is shut down" in logs(server)
        server.stop()

        # No acknowledged login is lost, and the database needs no recovery.
        server.start()
        assert rejected_tokens(server.base_url, [visit.token for visit in visits]) == []
        assert "not properly shut down" not in logs(server)


def test_idle_connections_are_closed_and_do_not_delay_the_shutdown(postgres_server: Postgres) -> None:
    dsn = postgres_server.fresh()
    with open_folder() as folder, serving(folder, SSO_DATABASE_URL=dsn) as server, ExitStack() as stack:
        connections = [stack.enter_context(Connection(server.base_url)) for _ in range(20)]
        for connection in connections:
            assert connection.ask("GET", "/healthz").status == 200
        assert len(held(server)) == 20
        for connection in connections[4:]:
            connection.close()
        assert until(lambda: len(held(server)) == 4), "connections that clients have closed are still held"
        began = time.monotonic()
        assert server.stop() == 0
        stopped = seconds_since(began)
        print(f"stopped after {stopped:.2f} s")
        assert not server.log_events("process.killed")
        assert stopped < STOPPED_S / 4 * SLACK, "no request was in flight"
    postgres_server.drop(dsn)


def held(server: Server) -> set[int]:
    return {port for worker in server.workers() for port in ports_of(worker)}


def slow_hash() -> int:
    """Returns the argon2 cost at which a hash takes HASH_S on this machine."""
    passes = 5
    hasher = argon2.PasswordHasher(time_cost=passes, memory_cost=HASH_KIB, parallelism=1)
    took = min(timeit.repeat(lambda: hasher.hash("x"), repeat=3, number=1))
    return min(100, max(1, round(passes * HASH_S / took)))


class Visit(threading.Thread):
    """One login in a thread; its result is available after ``join``."""

    def __init__(self, server: Server, person: Person) -> None:
        super().__init__(daemon=True)
        self._address = urlsplit(server.base_url).netloc
        self._person = person
        self.port = 0  # set when the request was sent
        self.status = 0
        self.token = ""
        self.error: object = None
        self.ended = 0.0
        self.start()

    def run(self) -> None:
        try:
            with closing(http.client.HTTPConnection(self._address, timeout=60)) as connection:
                connection.request("POST", LOGIN, json.dumps(self._person._asdict()))
                self.port = connection.sock.getsockname()[1]
                response = connection.getresponse()
                self.token = json.loads(response.read())["token"]
                self.status = response.status
        except (OSError, http.client.HTTPException) as error:
            self.error = error
        self.ended = time.monotonic()


def visits_in_flight(server: Server, people: Sequence[Person]) -> list[Visit]:
    """Starts logins until some that the server has read are not answered yet: a busy machine may notice too late."""
    for _ in range(20):
        visits = [Visit(server, person) for person in people]
        assert until(lambda: all(visit.port for visit in visits))  # noqa: B023
        assert until(lambda: unread({visit.port for visit in visits}) == 0)  # noqa: B023
        if not all(visit.ended for visit in visits):
            return visits
    pytest.fail("no request was in flight")


def until_refused(server: Server) -> float:
    """Returns the time when a new connection was first refused."""
    address = urlsplit(server.base_url)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            socket.create_connection((address.hostname, address.port), 5).close()
        except ConnectionRefusedError:
            return time.monotonic()
        time.sleep(0.02)
    pytest.fail("connections are still accepted")


def test_sighup_under_load_applies_new_settings_without_a_failed_request(postgres_server: Postgres) -> None:
    dsn = postgres_server.fresh()
    with open_folder() as folder:
        config = folder / "sso.toml"
        set_vendor(config, "first")
        with serving(folder, SSO_CONFIG=str(config), SSO_DATABASE_URL=dsn) as server:
            server.apply(people_document())
            pids = [set(server.workers())]
            with Load(server.base_url, PEOPLE, retry=True) as load:
                load.wait_for(20)
                for number in rounds():
                    set_vendor(config, f"vendor{number}")
                    reload(server, "reload.finished")
                    pids.append(set(server.workers()))
                    assert f"vendor{number}_nick" in sign_in(server, PEOPLE[-1]).data
                    load.wait_for(10, since=time.monotonic())
            journal = load.journal
            retried = sum(entry.retried for entry in journal.entries)
            print(f"{ROUNDS} reloads: {journal.count()}, {retried} retried, slowest {journal.slowest():.2f} s")
            assert journal.broken() == []
            assert journal.statuses() == {200}
            assert all(len(generation) == 2 for generation in pids)
            assert all(not before & after for before, after in itertools.pairwise(pids))
            assert rejected_tokens(server.base_url, journal.tokens) == []
            assert leaked(logs(server), journal.secrets) == []

            # Invalid settings are not applied.
            set_vendor(config, "Not A Vendor")
            reload(server, "reload.failed")
            assert f"vendor{ROUNDS - 1}_nick" in sign_in(server, PEOPLE[0]).data
            assert set(server.workers()) == pids[-1]

            # The new workers log as the new settings say.
            config.write_text('SSO_VENDOR = "quiet"\nSSO_LOG_LEVEL = "error"\n')
            reload(server, "reload.finished")
            answered = len(server.log_events("request.answered"))
            assert "quiet_nick" in sign_in(server, PEOPLE[0]).data
            assert len(server.log_events("request.answered")) == answered > 0
    postgres_server.drop(dsn)


def reload(server: Server, done: str) -> None:
    assert server.process is not None
    before = len(server.log_events(done))
    server.process.send_signal(signal.SIGHUP)
    assert until(lambda: len(server.log_events(done)) > before), server.log()[-3000:]


def set_vendor(config: Path, vendor: str) -> None:
    config.write_text(f'SSO_VENDOR = "{vendor}"\n')


def sign_in(server: Server, person: Person) -> Answer:
    with Connection(server.base_url) as connection:
        answer = connection.ask("POST", LOGIN, person._asdict())
    assert answer.status == 200
    return answer


def test_two_servers_share_the_database_of_one_data_directory() -> None:
    with open_folder() as folder, serving(folder) as first:
        add_people(first)
        token = sign_in(first, PEOPLE[0]).data["token"]
        (folder / "second").mkdir()
        with serving(folder / "second", SSO_DATA_DIR=first.settings["SSO_DATA_DIR"]) as second:
            database = postmaster(first)
            assert first.base_url != second.base_url
            assert rejected_tokens(second.base_url, [token]) == []

            # Both servers try to restart it, and one PostgreSQL runs afterwards.
            kill([database])
            assert until(lambda: postmaster(first) not in (0, database))
            assert until(lambda: is_ready(first) and is_ready(second))
            database = postmaster(first)

            with Load(second.base_url, PEOPLE) as load:
                load.wait_for(10)
                assert first.stop() == 0
                load.wait_for(20, since=time.monotonic())
            assert load.journal.statuses() == {200}
            assert load.journal.broken() == []
            assert postmaster(first) == database
            assert is_alive(database)
            assert rejected_tokens(second.base_url, [token]) == []

            # The same if the other server is killed.
            first.start()
            assert first.process is not None
            with Load(second.base_url, PEOPLE) as load:
                load.wait_for(10)
                kill(descendants({first.process.pid}))
                assert first.stop() == -signal.SIGKILL
                load.wait_for(20, since=time.monotonic())
            assert load.journal.statuses() == {200}
            assert load.journal.broken() == []
            assert postmaster(first) == database
            assert rejected_tokens(second.base_url, [token]) == []
        assert until(lambda: not is_alive(database)), "the last server stops the database"


def is_ready(server: Server) -> bool:
    """Returns whether all workers use the database again; the others are stopped while one is asked."""
    return all(map(partial(_is_ready, server), server.workers()))


def _is_ready(server: Server, worker: int) -> bool:
    others = set(server.workers()) - {worker}
    kill(others, signal.SIGSTOP)
    try:
        with Connection(server.base_url) as connection:
            return connection.ask("GET", "/readyz?database=1").status == 200
    finally:
        kill(others, signal.SIGCONT)
