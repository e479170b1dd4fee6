"""Tokens that are bound to a key (RFC 9449), or meant for resource servers (RFC 8707)."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
oldest_program = "0020"


def upgrade() -> None:
    op.add_column(
        "oauth_clients", sa.Column("dpop_bound_access_tokens", sa.Boolean(), server_default="false", nullable=False)
    )
    for table in ("oauth_requests", "oauth_codes", "oauth_grants", "oauth_access_tokens", "oauth_service_tokens"):
        op.add_column(table, sa.Column("dpop_jkt", sa.Text(), nullable=True))
        op.add_column(
            table, sa.Column("resources", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False)
        )
