"""Requests of clients can be recorded for an hour, without secrets."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0075"
down_revision = "0074"
oldest_program = "0049"


def upgrade() -> None:
    client = sa.ForeignKey("oauth_clients.client_id", ondelete="CASCADE")
    op.create_table(
        "oauth_recordings",
        sa.Column("client_id", sa.Text(), client, primary_key=True),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "oauth_recorded_requests",
        sa.Column("id", sa.BigInteger(), sa.Identity(), primary_key=True),
        sa.Column("client_id", sa.Text(), sa.ForeignKey("oauth_clients.client_id", ondelete="CASCADE"), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False, server_default=sa.text("now()")),
        sa.Column("network", sa.Text(), nullable=False),
        sa.Column("proven", sa.Boolean(), nullable=False),
        sa.Column("content", JSONB(), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_oauth_recorded_requests_client_id", "oauth_recorded_requests", ["client_id", "id"])
    for table in ("oauth_recordings", "oauth_recorded_requests"):
        op.create_index(f"ix_{table}_expired", table, [sa.text("(expires AT TIME ZONE 'UTC')")])
