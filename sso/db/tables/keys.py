"""Signing keys."""

from sqlalchemy import Column, Table, Text

from sso.db.tables.columns import SEALED, bool_column, created_column, metadata, timestamp_column

signing_keys = Table(
    "signing_keys",
    metadata,
    Column("kid", Text, primary_key=True),
    Column("algorithm", Text, nullable=False),
    bool_column("side"),  # signs only for clients that request its algorithm
    Column("public_pem", Text, nullable=False),
    Column("private_sealed", Text, nullable=False, info=SEALED),
    created_column(),
    timestamp_column("signs_from"),  # published earlier, so that clients have it by then
    timestamp_column("published_until", nullable=True),  # set when a newer key takes over
    timestamp_column("retired", nullable=True),  # when an operator withdrew it
)
