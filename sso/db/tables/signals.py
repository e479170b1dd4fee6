"""Streams of signals (Shared Signals Framework), the users that they do and do not concern, and what is to be sent."""

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

signal_streams = Table(
    "signal_streams",
    metadata,
    Column("stream_id", Text, primary_key=True),
    Column("client_id", Text, ForeignKey("oauth_clients.client_id", ondelete="CASCADE"), nullable=False),
    created_column(),
    text_column("description"),
    text_column("method", "poll"),  # or push
    text_column("endpoint_url"),  # where events are pushed to
    Column("authorization_sealed", Text, info=SEALED),  # the header Authorization of these requests
    text_array_column("requested"),  # the URIs of the types, as the receiver has named them
    text_array_column("events"),  # the short names of those that it gets
    text_column("status", "enabled"),  # paused: events are kept; disabled: they are not
    text_column("reason"),  # of the status
    bool_column("overfull"),  # it was paused because too many events wait; new ones are not stored
    timestamp_column("verified", nullable=True),  # when a verification was last requested
    text_column("lease"),
    Column("lease_until", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("tries", Integer, nullable=False, server_default=text("0")),  # that failed since the last success
    Column("next_try", DateTime(timezone=True), nullable=False, server_default=func.now()),
    timestamp_column("failing_since", nullable=True),
    text_column("problem"),  # the last error, or what the receiver has reported
    timestamp_column("last_delivery", nullable=True),
    Index("ix_signal_streams_client_id", "client_id"),
)

# The users that a stream has had events about, or that its receiver has excluded.
signal_subjects = Table(
    "signal_subjects",
    metadata,
    Column("stream_id", Text, ForeignKey("signal_streams.stream_id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", Text, ForeignKey("users.user_id", ondelete="CASCADE"), primary_key=True),
    bool_column("excluded"),
    Index("ix_signal_subjects_user_id", "user_id"),
)

# Written in the transaction of the change, deleted when the receiver has acknowledged it.
signal_events = Table(
    "signal_events",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("stream_id", Text, ForeignKey("signal_streams.stream_id", ondelete="CASCADE"), nullable=False),
    Column("jti", Text, nullable=False, server_default=text("(gen_random_uuid())::text")),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("type", Text, nullable=False),
    Column("sub", Text),  # the id of a user, who may have been erased; NULL: it is about the stream
    Column("sid", Text),  # the session that it is about
    Column("email", Text),  # the address that it is about
    json_column("data"),
    Column("txn", Text, nullable=False),
    timestamp_column("expires"),
    Index("ix_signal_events_stream_id", "stream_id", "id"),
    Index("ix_signal_events_sub", "sub", postgresql_where=text("sub IS NOT NULL")),
    expiry_index("signal_events"),
)
