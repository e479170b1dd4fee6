"""Authorization requests that clients push (RFC 9126)."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
oldest_program = "0020"


def upgrade() -> None:
    op.add_column(
        "oauth_clients",
        sa.Column("require_pushed_authorization_requests", sa.Boolean(), server_default="false", nullable=False),
    )
    op.create_table(
        "oauth_pushed_requests",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("query", sa.LargeBinary(), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["client_id"],
            ["oauth_clients.client_id"],
            name=op.f("fk_oauth_pushed_requests_client_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_oauth_pushed_requests")),
    )
    op.create_index("ix_oauth_pushed_requests_client_id", "oauth_pushed_requests", ["client_id"])
    op.create_index(
        "ix_oauth_pushed_requests_expired", "oauth_pushed_requests", [sa.text("(expires AT TIME ZONE 'UTC')")]
    )
