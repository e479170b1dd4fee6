"""Ids of erased users, which are not used again."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
oldest_program = "0020"


def upgrade() -> None:
    op.create_table(
        "erased_users",
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_erased_users")),
    )
