"""The stream of changes that programs read: changes of effective permissions, users and keys."""

from sqlalchemy import BigInteger, Column, DateTime, Identity, Index, Integer, Table, Text, func, text

from sso.db.tables.columns import json_column, metadata

# Written in the transaction of the change. The sequencer sets the position after the commit.
change_events = Table(
    "change_events",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("position", BigInteger),  # the place in the stream; NULL until the sequencer has seen the event
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("type", Text, nullable=False),
    Column("user_id", Text),
    Column("application_id", Integer),
    json_column("data"),
    Index("ix_change_events_position", "position", unique=True),
    Index("ix_change_events_application_id", "application_id", "position"),
    Index("ix_change_events_user_id", "user_id", postgresql_where=text("user_id IS NOT NULL")),
    Index("ix_change_events_pending", "id", postgresql_where=text("position IS NULL")),
)

# One row. Positions are microseconds since 1970, and each is greater than the one before.
change_stream = Table(
    "change_stream",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("last_position", BigInteger, nullable=False),  # of the newest event
    Column("trimmed_to", BigInteger, nullable=False),  # of the newest event that was deleted because of its age
)
