"""Users can be merged, and a game session can link a guest to an account."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0064"
down_revision = "0063"
oldest_program = "0049"


def upgrade() -> None:
    op.add_column("users", sa.Column("merged_into", sa.Text()))
    op.create_foreign_key("fk_users_merged_into", "users", "users", ["merged_into"], ["user_id"], ondelete="CASCADE")
    op.create_index(
        "ix_users_merged_into", "users", ["merged_into"], postgresql_where=sa.text("merged_into IS NOT NULL")
    )
    op.create_table(
        "user_merges",
        sa.Column("user_id", sa.Text(), sa.ForeignKey("users.user_id", ondelete="CASCADE"), primary_key=True),
        sa.Column("into_id", sa.Text(), sa.ForeignKey("users.user_id", ondelete="CASCADE"), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False, server_default=sa.text("now()")),
        sa.Column("was_disabled", sa.Boolean(), nullable=False, server_default=sa.text("false")),
        sa.Column("moved", JSONB(), nullable=False, server_default=sa.text("'{}'::jsonb")),
    )
    op.create_index("ix_user_merges_into_id", "user_merges", ["into_id"])
    op.create_index("ix_user_merges_at", "user_merges", ["at"])
    op.add_column("game_sessions", sa.Column("link_guest", sa.Text()))
    op.create_foreign_key(
        "fk_game_sessions_link_guest", "game_sessions", "users", ["link_guest"], ["user_id"], ondelete="CASCADE"
    )
    op.create_index(
        "ix_game_sessions_link_guest",
        "game_sessions",
        ["link_guest"],
        postgresql_where=sa.text("link_guest IS NOT NULL"),
    )
    op.add_column("game_sessions", sa.Column("linked", sa.Text()))
