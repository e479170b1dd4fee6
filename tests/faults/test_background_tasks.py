"""A failed background task is logged and restarted; its worker continues to serve."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.faults import PEOPLE, leaked, logs, open_folder, people_document, serving, sql
from tests.kit.browser import mailed_codes, new_user
from tests.kit.builders import PASSWORD
from tests.kit.load import LOGIN, Connection
from tests.kit.postgres import Postgres
from tests.kit.server import Server, until


class Damage(NamedTuple):
    """An unexpected state of the database."""

    do: str
    wake: str
    undo: str
    log_text: str


DAMAGED_KEY = Damage(
    """INSERT INTO signing_keys (kid, algorithm, public_pem, private_sealed, signs_from)
    SELECT 'damaged', algorithm, public_pem, private_sealed, signs_from FROM signing_keys LIMIT 1""",
    "keys",
    "DELETE FROM signing_keys WHERE kid = 'damaged'",
    "sealed value of signing_keys.private_sealed:damaged: cannot be decrypted",
)
MISSING_TABLE = Damage(
    "ALTER TABLE outbox RENAME TO outbox_away",
    "mail",
    "ALTER TABLE outbox_away RENAME TO outbox",
    "UndefinedTableError",
)


@pytest.fixture(scope="module")
def server(postgres_server: Postgres) -> Iterator[Server]:
    dsn = postgres_server.fresh()
    with open_folder() as folder, serving(folder, SSO_DATABASE_URL=dsn) as server:
        server.apply(people_document())
        yield server
    postgres_server.drop(dsn)


def test_undecryptable_key_is_logged_and_stops_no_worker(server: Server) -> None:
    dsn = server.settings["SSO_DATABASE_URL"]
    first = server.workers()
    sql(dsn, DAMAGED_KEY.do, f"SELECT pg_notify('sso', '{DAMAGED_KEY.wake}')")
    assert until(lambda: len({entry["process"] for entry in server.log_events("keys.decryption_failed")}) == 2)
    assert DAMAGED_KEY.log_text in str(server.log_events("keys.decryption_failed")[0])
    assert login_status(server) == 200
    assert server.workers() == first
    sql(dsn, DAMAGED_KEY.undo, f"SELECT pg_notify('sso', '{DAMAGED_KEY.wake}')")


def test_invalid_mail_stops_no_worker_and_the_next_mail_is_sent(server: Server) -> None:
    dsn = server.settings["SSO_DATABASE_URL"]
    first = server.workers()
    for number, recipient in enumerate(("grp:;@example.com", "a@[1.2.3.4", "nobody", "x@y\nBcc: z@example.com")):
        sql(dsn, f"INSERT INTO outbox (id, recipient, body_sealed) VALUES ('{number}', '{recipient}', 'v1.0.0')")
    login = new_user(server, email_2fa=True)
    sql(dsn, "SELECT pg_notify('sso', 'mail')")
    assert until(lambda: len(server.log_events("queue.delivery_failed")) >= 4)
    with server.client() as client:
        assert client.post(LOGIN, json={"login": login, "password": PASSWORD}).json()["otp"] == ["email"]
    assert mailed_codes(server, login)
    assert server.workers() == first
    assert server.log_events("process.died") == []
    sql(dsn, "DELETE FROM outbox")


def test_unknown_notification_stops_no_worker(server: Server) -> None:
    first = server.workers()
    payloads = ["", "\n", "mail\n\nkeys", "poll:", "x" * 7000, "socket:\u2028", "polls"]
    sql(server.settings["SSO_DATABASE_URL"], *(f"SELECT pg_notify('sso', '{payload}')" for payload in payloads))
    assert login_status(server) == 200
    assert server.workers() == first


def test_failed_task_is_restarted_and_its_worker_continues_to_serve(server: Server) -> None:
    damage = MISSING_TABLE
    dsn = server.settings["SSO_DATABASE_URL"]
    first = server.workers()
    sql(dsn, damage.do, f"SELECT pg_notify('sso', '{damage.wake}')")
    assert until(lambda: len({entry["process"] for entry in server.log_events("background.task_failed")}) == 2)
    failure = server.log_events("background.task_failed")[0]
    assert failure["task"] == "mail"
    assert damage.log_text in str(failure)
    assert login_status(server) == 200
    assert until(lambda: len(server.log_events("background.task_failed")) >= 6), "the task is restarted"

    sql(dsn, damage.undo)
    login = new_user(server, email_2fa=True)
    with server.client() as client:
        assert client.post(LOGIN, json={"login": login, "password": PASSWORD}).json()["otp"] == ["email"]
    assert until(lambda: mailed_codes(server, login))
    assert server.workers() == first
    assert server.log_events("process.died") == []
    assert leaked(logs(server), [person.password for person in PEOPLE]) == []


def login_status(server: Server) -> int:
    """Returns 0 if the server does not answer."""
    try:
        with Connection(server.base_url, timeout_s=2.0) as connection:
            return connection.ask("POST", LOGIN, PEOPLE[0]._asdict()).status
    except OSError:
        return 0
