"""Recorded requests of OAuth clients."""

from sqlalchemy import BigInteger, Boolean, Column, DateTime, ForeignKey, Identity, Index, Table, Text, func
from sqlalchemy.dialects.postgresql import JSONB

from sso.db.tables.columns import expiry_index, metadata, timestamp_column

# Clients whose requests are recorded until the end.
oauth_recordings = Table(
    "oauth_recordings",
    metadata,
    Column("client_id", Text, ForeignKey("oauth_clients.client_id", ondelete="CASCADE"), primary_key=True),
    timestamp_column("expires"),
    expiry_index("oauth_recordings"),
)

# What such clients have sent and got, without secrets.
oauth_recorded_requests = Table(
    "oauth_recorded_requests",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("client_id", Text, ForeignKey("oauth_clients.client_id", ondelete="CASCADE"), nullable=False),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("network", Text, nullable=False),  # of the sender
    Column("proven", Boolean, nullable=False),  # only the client, or a user of it, could send it
    Column("content", JSONB, nullable=False),
    timestamp_column("expires"),
    Index("ix_oauth_recorded_requests_client_id", "client_id", "id"),
    expiry_index("oauth_recorded_requests"),
)
