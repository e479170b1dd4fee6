"""Clients can register themselves: who has registered a client, its approval, and tokens that allow a registration."""

import sqlalchemy as sa
from alembic import op

revision = "0074"
down_revision = "0073"
oldest_program = "0049"


def upgrade() -> None:
    op.add_column("oauth_clients", sa.Column("registered_by", sa.Text(), nullable=False, server_default=""))
    op.add_column("oauth_clients", sa.Column("approved", sa.Boolean(), nullable=False, server_default=sa.text("true")))
    op.add_column("oauth_clients", sa.Column("registration_digest", sa.LargeBinary()))
    op.add_column("oauth_clients", sa.Column("registration_used", sa.DateTime(timezone=True)))
    op.create_index(
        "ix_oauth_clients_registration_used",
        "oauth_clients",
        ["registration_used"],
        postgresql_where=sa.text("registration_used IS NOT NULL"),
    )
    op.create_index(
        "ix_oauth_clients_approved", "oauth_clients", ["client_id"], postgresql_where=sa.text("NOT approved")
    )
    op.create_table(
        "oauth_registration_tokens",
        sa.Column("id", sa.BigInteger(), sa.Identity(), primary_key=True),
        sa.Column("digest", sa.LargeBinary(), nullable=False, unique=True),
        sa.Column("uses", sa.Integer(), nullable=False),
        sa.Column("uses_left", sa.Integer(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False, server_default=sa.text("now()")),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index(
        "ix_oauth_registration_tokens_expired",
        "oauth_registration_tokens",
        [sa.text("(expires AT TIME ZONE 'UTC')")],
    )
