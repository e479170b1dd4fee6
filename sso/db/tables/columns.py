"""Columns and indexes that several tables have."""

from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Index,
    MetaData,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

SEALED = {"sealed": True}


def sealed_columns() -> list[tuple[Table, Column[Any]]]:
    """Returns the columns with encrypted values, with their tables."""
    return [(table, column) for table in metadata.sorted_tables for column in table.columns if "sealed" in column.info]


def timestamp_column(name: str, *, nullable: bool = False) -> Column[object]:
    return Column(name, DateTime(timezone=True), nullable=nullable)


def created_column() -> Column[object]:
    return Column("created", DateTime(timezone=True), nullable=False, server_default=func.now())


def text_column(name: str, default: str = "") -> Column[object]:
    return Column(name, Text, nullable=False, server_default=default)


def bool_column(name: str) -> Column[object]:
    return Column(name, Boolean, nullable=False, server_default=text("false"))


def text_array_column(name: str, *defaults: str) -> Column[object]:
    return Column(name, ARRAY(Text), nullable=False, server_default=text(f"'{{{','.join(defaults)}}}'::text[]"))


def json_column(name: str) -> Column[object]:
    return Column(name, JSONB, nullable=False, server_default=text("'{}'::jsonb"))


def user_column() -> Column[object]:
    return Column("user_id", Text, ForeignKey("users.user_id", ondelete="CASCADE"), nullable=False)


def bigint_column(name: str, default: int = 0) -> Column[object]:
    return Column(name, BigInteger, nullable=False, server_default=text(str(default)))


def expiry_index(table: str) -> Index:
    """Returns an index that only the cleanup can use: it does not match ``expires > now()``.

    Other statements find rows by their keys. An index on ``expires`` would tempt the planner, while a table is small,
    to read all rows that have not expired, and the plan would stay the same when the table has grown.
    """
    return Index(f"ix_{table}_expired", text("(expires AT TIME ZONE 'UTC')"))
