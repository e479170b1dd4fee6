"""What the edge has seen."""

from sqlalchemy import Column, Table, Text

from sso.db.tables.columns import expiry_index, metadata, moment, text_column

# Peers that sent forwarding headers without being trusted, for `sso doctor`.
untrusted_proxies = Table(
    "untrusted_proxies",
    metadata,
    Column("peer", Text, primary_key=True),
    text_column("header"),
    moment("last_seen"),
    moment("expires"),
    expiry_index("untrusted_proxies"),
)
