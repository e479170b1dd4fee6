"""Clients of the OAuth endpoints."""

from sqlalchemy import Column, Table, Text

from sso.db.tables.columns import SEALED, created, flag, metadata, text_column, words

oauth_clients = Table(
    "oauth_clients",
    metadata,
    Column("client_id", Text, primary_key=True),
    Column("secret_sealed", Text, info=SEALED),  # none: a public client
    text_column("name"),
    words("redirect_hosts"),
    words("redirect_uris"),
    text_column("profile", "strict"),
    flag("consent"),
    flag("first_party"),
    flag("disabled"),
    created(),
)
