"""Service clients of applications with their access tokens, and resource servers."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
oldest_program = "0020"


def upgrade() -> None:
    op.add_column("oauth_clients", sa.Column("application_id", sa.Integer(), server_default="0", nullable=False))
    op.add_column("oauth_clients", sa.Column("resource_server", sa.Boolean(), server_default="false", nullable=False))
    op.create_table(
        "oauth_service_tokens",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("application_id", sa.Integer(), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["client_id"],
            ["oauth_clients.client_id"],
            name=op.f("fk_oauth_service_tokens_client_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_oauth_service_tokens")),
    )
    op.create_index("ix_oauth_service_tokens_client_id", "oauth_service_tokens", ["client_id"])
    op.create_index(
        "ix_oauth_service_tokens_expired", "oauth_service_tokens", [sa.text("(expires AT TIME ZONE 'UTC')")]
    )
