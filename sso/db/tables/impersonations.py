"""Visits of administrators to the account pages of users. Each begins as a link that works once."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text

from sso.db.tables.columns import bool_column, expiry_index, metadata, text_column, timestamp_column, user_column

impersonations = Table(
    "impersonations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("link_digest", LargeBinary, unique=True),  # NULL: the link was used
    Column("digest", LargeBinary, unique=True),  # of the secret in the cookie; NULL: the link was not used yet
    user_column(),
    Column("user_valid_from", BigInteger, nullable=False),  # as it was then: a later one ends the visit
    Column("impersonator", Text, ForeignKey("users.user_id", ondelete="CASCADE")),  # NULL: the operator
    Column("impersonator_valid_from", BigInteger),
    text_column("operator"),
    bool_column("may_write"),
    Column("minutes", Integer, nullable=False),
    timestamp_column("started", nullable=True),
    timestamp_column("expires"),
    Index("ix_impersonations_user_id", "user_id"),
    Index("ix_impersonations_impersonator", "impersonator"),
    expiry_index("impersonations"),
)
