"""A row that another transaction has locked."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, text

from sso.db.standalone import run_with_connection


@contextmanager
def locked_by_another_transaction(dsn: str, sql: str) -> Iterator[None]:
    """Another transaction holds locks on the selected rows inside the block."""
    with _transaction(dsn, sql, Connection.rollback):
        yield


@contextmanager
def deleted_by_another_transaction(dsn: str, sql: str) -> Iterator[None]:
    """Another transaction deletes the rows, and commits at the end of the block."""
    with _transaction(dsn, sql, Connection.commit):
        yield


@contextmanager
def _transaction(dsn: str, sql: str, end: Callable[[Connection], None]) -> Iterator[None]:
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
