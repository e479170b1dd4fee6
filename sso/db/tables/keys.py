"""Signing keys."""

from sqlalchemy import Column, Table, Text

from sso.db.tables.columns import SEALED, created, metadata, moment

signing_keys = Table(
    "signing_keys",
    metadata,
    Column("kid", Text, primary_key=True),
    Column("algorithm", Text, nullable=False),
    Column("public_pem", Text, nullable=False),
    Column("private_sealed", Text, nullable=False, info=SEALED),
    created(),
    moment("signs_from"),  # published before, so that everybody knows it by then
    moment("published_until", nullable=True),  # set when a newer one takes over
    moment("retired", nullable=True),  # taken out at once, by hand
)
