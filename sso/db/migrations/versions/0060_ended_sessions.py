"""Browsers are told why their session has ended."""

import sqlalchemy as sa
from alembic import op

revision = "0060"
down_revision = "0059"
oldest_program = "0049"


def upgrade() -> None:
    now = sa.text("now()")
    op.create_table(
        "ended_sessions",
        sa.Column("digest", sa.LargeBinary(), primary_key=True),
        sa.Column("user_id", sa.Text(), sa.ForeignKey("users.user_id", ondelete="CASCADE"), nullable=False),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=False, server_default=now),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_ended_sessions_user_id", "ended_sessions", ["user_id"])
    op.create_index("ix_ended_sessions_expired", "ended_sessions", [sa.text("(expires AT TIME ZONE 'UTC')")])
