"""Statements that write the given columns of one row, for records of which any part may be set."""

from collections.abc import Iterable
from functools import lru_cache

from sso.db.statement import Statement


def insert_statement(table: str, columns: Iterable[str]) -> Statement:
    return _insert(table, tuple(columns))


def update_statement(table: str, key: str, columns: Iterable[str]) -> Statement:
    """``key`` is the column that selects the row. It is a parameter as well, and must not be one of ``columns``."""
    return _update(table, key, tuple(columns))


@lru_cache(100)
def _insert(table: str, columns: tuple[str, ...]) -> Statement:
    placeholders = ", ".join(f":{name}" for name in columns)
    return Statement(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({placeholders})", f"insert_{table}")


@lru_cache(100)
def _update(table: str, key: str, columns: tuple[str, ...]) -> Statement:
    changes = ", ".join(f"{name} = :{name}" for name in columns)
    return Statement(f"UPDATE {table} SET {changes} WHERE {key} = :{key}", f"update_{table}")
