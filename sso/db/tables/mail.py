"""Mails that are to be sent."""

from sqlalchemy import Column, DateTime, Index, Integer, Table, Text, func, text

from sso.db.tables.columns import SEALED, created_column, metadata, text_column

outbox = Table(
    "outbox",
    metadata,
    Column("id", Text, primary_key=True),
    text_column("recipient"),
    text_column("subject"),
    Column("body_sealed", Text, nullable=False, info=SEALED),
    Column("html_sealed", Text, info=SEALED),  # NULL: the message is plain text
    created_column(),
    Column("next_try", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("request_id", Text),  # of the request that queued the message, for the log
    Column("trace_id", Text),
    Index("ix_outbox_next_try", "next_try"),
)
