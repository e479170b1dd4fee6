"""Rows that another transaction has locked or changed."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, text

from sso.db.standalone import run_with_connection
from tests.kit.browser import query
from tests.kit.server import Server, until

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@contextmanager
def locked_by_another_transaction(dsn: str, sql: str) -> Iterator[None]:
    """Another transaction holds locks on the selected rows inside the block."""
    with _another_transaction(dsn, sql, Connection.rollback):
        yield


@contextmanager
def changed_by_another_transaction(dsn: str, sql: str) -> Iterator[None]:
    """Another transaction has changed or deleted rows, and commits at the end of the block."""
    with _another_transaction(dsn, sql, Connection.commit):
        yield


@contextmanager
def changed_when_somebody_waits(server: Server, sql: str) -> Iterator[None]:
    """Like `changed_by_another_transaction`. The end of the block waits until somebody waits for the rows."""
    with changed_by_another_transaction(server.settings["SSO_DATABASE_URL"], sql):
        yield
        assert until(lambda: query(server, WAITING)[0][0]), "no transaction waits for the changed rows"


@contextmanager
def _another_transaction(dsn: str, sql: str, end: Callable[[Connection], None]) -> Iterator[None]:
    holding, done = threading.Event(), threading.Event()

    def hold(connection: Connection) -> None:
        connection.execute(text(sql))
        holding.set()
        done.wait(60)
        end(connection)

    thread = threading.Thread(target=run_with_connection, args=(dsn, hold))
    thread.start()
    try:
        assert holding.wait(20)
        yield
    finally:
        done.set()
        thread.join()
