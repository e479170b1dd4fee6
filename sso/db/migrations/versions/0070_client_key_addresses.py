"""Clients may publish their keys at an address, and request claims one by one."""

import sqlalchemy as sa
from alembic import op

revision = "0070"
down_revision = "0069"
oldest_program = "0049"


def upgrade() -> None:
    op.add_column("oauth_clients", sa.Column("jwks_uri", sa.Text(), nullable=False, server_default=""))
    for table in ("oauth_requests", "oauth_codes", "oauth_grants"):
        op.add_column(table, sa.Column("claims", sa.Text(), nullable=False, server_default=""))
