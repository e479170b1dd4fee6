"""Indexes for lists of the management API: game sessions from the newest, and groups by the beginning of a title."""

from alembic import op

revision = "0049"
down_revision = "0048"
oldest_program = "0020"


def upgrade() -> None:
    op.execute("CREATE INDEX ix_game_sessions_created ON game_sessions (created, location)")
    op.execute('CREATE INDEX ix_user_groups_title_c ON user_groups (lower(title) COLLATE "C")')
