"""The workers of all nodes."""

from sqlalchemy import Column, Float, Integer, Table, Text

from sso.db.tables.columns import expiry_index, metadata, text_array_column, timestamp_column

# Each worker updates its row every few seconds, for `sso status` and `sso doctor`.
node_workers = Table(
    "node_workers",
    metadata,
    Column("worker", Text, primary_key=True),
    Column("node", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("version", Text, nullable=False),  # of the program
    Column("schema_version", Text, nullable=False),  # that the program was made for
    Column("base_url", Text, nullable=False),
    text_array_column("master_keys"),  # ids of the keys, the one that encrypts first
    Column("workers", Integer, nullable=False),  # that the node should have
    Column("held_polls", Integer, nullable=False),
    Column("sockets", Integer, nullable=False),
    Column("clock_offset", Float, nullable=False),  # seconds by which the clock of the host is ahead
    timestamp_column("started"),
    timestamp_column("last_seen"),
    timestamp_column("expires"),
    expiry_index("node_workers"),
)
