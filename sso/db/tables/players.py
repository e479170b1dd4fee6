"""The keys of devices with which players sign in, and merges of users."""

from sqlalchemy import Column, DateTime, ForeignKey, Index, LargeBinary, Table, Text, func, text

from sso.db.tables.columns import (
    bool_column,
    created_column,
    expiry_index,
    json_column,
    metadata,
    text_column,
    timestamp_column,
    user_column,
)

# A key signs one user in. It outlives the time as a guest: the account that a guest becomes keeps it.
device_keys = Table(
    "device_keys",
    metadata,
    Column("digest", LargeBinary, primary_key=True),  # SHA-256 of the SubjectPublicKeyInfo in DER
    Column("id", Text, nullable=False, unique=True),  # the id on the account page
    user_column(),
    text_column("algorithm"),
    bool_column("of_guest"),  # its user is a guest, who is erased some time after the last use
    created_column(),
    Column("last_used", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Index("ix_device_keys_user_id", "user_id"),
    Index("ix_device_keys_of_guest", "last_used", postgresql_where=text("of_guest")),
)

# Requests of guests that were accepted. Each is accepted once; the digest covers the key and its nonce.
device_nonces = Table(
    "device_nonces",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    timestamp_column("expires"),
    expiry_index("device_nonces"),
)

# The newest merge of a user into another one. Until it cannot be undone any more, it has what was moved.
user_merges = Table(
    "user_merges",
    metadata,
    Column("user_id", Text, ForeignKey("users.user_id", ondelete="CASCADE"), primary_key=True),
    Column("into_id", Text, ForeignKey("users.user_id", ondelete="CASCADE"), nullable=False),
    Column("at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    bool_column("was_disabled"),
    json_column("moved"),
    Index("ix_user_merges_into_id", "into_id"),
    Index("ix_user_merges_unfinished", "at", postgresql_where=text("moved <> '{}'::jsonb")),
)
