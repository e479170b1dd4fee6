"""A background task that fails takes its worker down, loudly; another comes, ever later, until the cause is gone."""

import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.faults import PEOPLE, is_alive, leaked, logs, open_folder, people_document, serving, sql
from tests.kit.load import LOGIN, Connection
from tests.kit.postgres import Postgres
from tests.kit.server import Server, until

LONGEST_BACK_OFF_S = 10.0


class Harm(NamedTuple):
    """Something that no task expects of its database."""

    do: str
    wake: str
    undo: str
    said: str  # in the log


DAMAGED_KEY = Harm(
    """INSERT INTO signing_keys (kid, algorithm, public_pem, private_sealed, signs_from)
    SELECT 'damaged', algorithm, public_pem, private_sealed, signs_from FROM signing_keys LIMIT 1""",
    "keys",
    "DELETE FROM signing_keys WHERE kid = 'damaged'",
    "a sealed value (signing_keys.private_sealed:damaged) does not open",
)
MISSING_TABLE = Harm(
    "ALTER TABLE outbox RENAME TO outbox_away",
    "mail",
    "ALTER TABLE outbox_away RENAME TO outbox",
    "UndefinedTableError",
)


@pytest.fixture
def server(postgres_server: Postgres) -> Iterator[Server]:
    dsn = postgres_server.fresh()
    with open_folder() as folder, serving(folder, SSO_DATABASE_URL=dsn) as server:
        server.apply(people_document())
        yield server
    postgres_server.drop(dsn)


def test_a_key_that_cannot_be_opened_is_said_and_takes_nobody_down(server: Server) -> None:
    dsn = server.settings["SSO_DATABASE_URL"]
    first = server.workers()
    sql(dsn, DAMAGED_KEY.do, f"SELECT pg_notify('sso', '{DAMAGED_KEY.wake}')")
    assert until(lambda: len({entry["process"] for entry in server.log_events("keys.not_opened")}) == 2)
    assert DAMAGED_KEY.said in str(server.log_events("keys.not_opened")[0])
    assert login_status(server) == 200
    assert server.workers() == first


def test_a_failing_task_brings_its_worker_down_and_it_is_back_when_all_is_well(server: Server) -> None:
    harm = MISSING_TABLE
    dsn = server.settings["SSO_DATABASE_URL"]
    first = server.workers()
    assert login_status(server) == 200
    sql(dsn, harm.do, f"SELECT pg_notify('sso', '{harm.wake}')")
    assert until(lambda: not any(map(is_alive, first)))
    assert until(lambda: len(server.log_events("process died")) >= 6), "it is tried again"
    failures = server.log_events("process failed")
    assert harm.said in str(failures[0])
    assert {entry["how"] for entry in server.log_events("process died")} == {"exit code 1"}
    assert server.process is not None
    assert server.process.poll() is None, "the supervisor goes on"
    tries = len(server.log_events("process started"))

    sql(dsn, harm.undo)
    repaired = time.monotonic()
    assert until(lambda: len(server.workers()) == 2 and login_status(server) == 200, LONGEST_BACK_OFF_S * 2)
    print(f"{tries} starts, back {time.monotonic() - repaired:.2f} s after the repair")
    assert len(server.log_events("process started")) < 30, "without a pause it would be hundreds"
    settled = set(server.workers())
    time.sleep(0.5)
    assert set(server.workers()) == settled
    assert leaked(logs(server), [person.password for person in PEOPLE]) == []


def login_status(server: Server) -> int:
    """0 while nobody answers."""
    try:
        with Connection(server.base_url, answer_s=2.0) as connection:
            return connection.ask("POST", LOGIN, PEOPLE[0]._asdict()).status
    except OSError:
        return 0
