"""Signing keys."""

from sqlalchemy import Column, Table, Text

from sso.db.tables.columns import SEALED, created, flag, metadata, moment

signing_keys = Table(
    "signing_keys",
    metadata,
    Column("kid", Text, primary_key=True),
    Column("algorithm", Text, nullable=False),
    flag("side"),  # signs only where its algorithm is asked for; the others sign everything else
    Column("public_pem", Text, nullable=False),
    Column("private_sealed", Text, nullable=False, info=SEALED),
    created(),
    moment("signs_from"),  # published before, so that everybody knows it by then
    moment("published_until", nullable=True),  # set when a newer one takes over
    moment("retired", nullable=True),  # taken out at once, by hand
)
