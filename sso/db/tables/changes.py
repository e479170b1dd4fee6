"""The stream of changes that programs read: of effective permissions, users and keys; and where events are sent to."""

from sqlalchemy import BigInteger, Column, DateTime, ForeignKey, Identity, Index, Integer, Table, Text, func, text

from sso.db.tables.columns import (
    SEALED,
    bool_column,
    created_column,
    expiry_index,
    json_column,
    metadata,
    text_array_column,
    text_column,
    timestamp_column,
)

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
    Column("last_position", BigInteger, nullable=False),  # the newest event
    Column("trimmed_to", BigInteger, nullable=False),  # the newest event that was deleted because of its age
)

# Addresses that events are sent to, in the order of the stream. The worker that has the lease sends.
webhooks = Table(
    "webhooks",
    metadata,
    Column("webhook_id", Text, primary_key=True),
    Column("url", Text, nullable=False),
    Column("secret_sealed", Text, nullable=False, info=SEALED),
    text_array_column("events"),  # types and groups of types; empty: all
    bool_column("disabled"),
    created_column(),
    Column("position", BigInteger, nullable=False),  # events up to here were delivered or have failed
    text_column("lease"),
    Column("lease_until", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("tries", Integer, nullable=False, server_default=text("0")),  # that failed since the last success
    Column("next_try", DateTime(timezone=True), nullable=False, server_default=func.now()),
    timestamp_column("failing_since", nullable=True),
    text_column("problem"),
)

# Events that have failed, as they were in the stream.
webhook_failures = Table(
    "webhook_failures",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("webhook_id", Text, ForeignKey("webhooks.webhook_id", ondelete="CASCADE"), nullable=False),
    Column("position", BigInteger, nullable=False),
    timestamp_column("at"),
    Column("type", Text, nullable=False),
    Column("user_id", Text),
    Column("application_id", Integer),
    json_column("data"),
    Column("failed_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    text_column("problem"),
    timestamp_column("retry_at", nullable=True),  # when it is sent again; NULL: not unless someone asks for it
    timestamp_column("expires"),
    Index("ix_webhook_failures_webhook_id", "webhook_id", "id"),
    Index("ix_webhook_failures_user_id", "user_id", postgresql_where=text("user_id IS NOT NULL")),
    Index("ix_webhook_failures_retry_at", "retry_at", postgresql_where=text("retry_at IS NOT NULL")),
    expiry_index("webhook_failures"),
)
