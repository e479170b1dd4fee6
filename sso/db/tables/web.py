"""Observations of the web layer."""

from sqlalchemy import Column, Table, Text

from sso.db.tables.columns import expiry_index, metadata, text_column, timestamp_column

# Peers that sent forwarding headers but are not trusted proxies, for `sso doctor`.
untrusted_proxies = Table(
    "untrusted_proxies",
    metadata,
    Column("peer", Text, primary_key=True),
    text_column("header"),
    timestamp_column("last_seen"),
    timestamp_column("expires"),
    expiry_index("untrusted_proxies"),
)
