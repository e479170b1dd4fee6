"""Visits of administrators to the account pages of users."""

import sqlalchemy as sa
from alembic import op

revision = "0073"
down_revision = "0072"
oldest_program = "0049"


def upgrade() -> None:
    op.create_table(
        "impersonations",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("link_digest", sa.LargeBinary(), unique=True),
        sa.Column("digest", sa.LargeBinary(), unique=True),
        sa.Column("user_id", sa.Text(), sa.ForeignKey("users.user_id", ondelete="CASCADE"), nullable=False),
        sa.Column("user_valid_from", sa.BigInteger(), nullable=False),
        sa.Column("impersonator", sa.Text(), sa.ForeignKey("users.user_id", ondelete="CASCADE")),
        sa.Column("impersonator_valid_from", sa.BigInteger()),
        sa.Column("operator", sa.Text(), nullable=False, server_default=""),
        sa.Column("may_write", sa.Boolean(), nullable=False, server_default=sa.text("false")),
        sa.Column("minutes", sa.Integer(), nullable=False),
        sa.Column("started", sa.DateTime(timezone=True)),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_impersonations_user_id", "impersonations", ["user_id"])
    op.create_index("ix_impersonations_impersonator", "impersonations", ["impersonator"])
    op.create_index("ix_impersonations_expired", "impersonations", [sa.text("(expires AT TIME ZONE 'UTC')")])
