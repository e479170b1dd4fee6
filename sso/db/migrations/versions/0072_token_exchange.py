"""Clients may exchange access tokens of users. An exchanged token refers to the one that it ends with."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0072"
down_revision = "0071"
oldest_program = "0049"


def upgrade() -> None:
    op.add_column(
        "oauth_clients", sa.Column("token_exchange", sa.Boolean(), nullable=False, server_default=sa.text("false"))
    )
    op.add_column(
        "oauth_grants", sa.Column("act", ARRAY(sa.Text()), nullable=False, server_default=sa.text("'{}'::text[]"))
    )
    op.add_column("oauth_access_tokens", sa.Column("subject_digest", sa.LargeBinary()))
    op.create_foreign_key(
        "fk_oauth_access_tokens_subject_digest",
        "oauth_access_tokens",
        "oauth_access_tokens",
        ["subject_digest"],
        ["digest"],
        ondelete="CASCADE",
        postgresql_not_valid=True,  # nothing needs to be checked: all values are NULL
    )
    op.create_index(
        "ix_oauth_access_tokens_subject_digest",
        "oauth_access_tokens",
        ["subject_digest"],
        postgresql_where=sa.text("subject_digest IS NOT NULL"),
    )
