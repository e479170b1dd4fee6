"""The security history of users, and accounts that are going to be deleted."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0023"
down_revision = "0022"
oldest_program = "0020"


def upgrade() -> None:
    op.create_table(
        "account_events",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), server_default="", nullable=False),
        sa.Column("device", sa.Text(), server_default="", nullable=False),
        sa.Column("detail", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("times", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.user_id"], name=op.f("fk_account_events_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account_events")),
    )
    op.create_index("ix_account_events_user_id", "account_events", ["user_id", "id"])
    op.add_column("users", sa.Column("deletion_due", sa.DateTime(timezone=True), nullable=True))
    op.add_column("users", sa.Column("deletion_by", sa.Text(), nullable=True))
    op.create_index(
        "ix_users_deletion_due", "users", ["deletion_due"], postgresql_where=sa.text("deletion_due IS NOT NULL")
    )
