"""Indexes for the search of users by the beginning of a login or nickname."""

from alembic import op

revision = "0040"
down_revision = "0039"
oldest_program = "0020"


def upgrade() -> None:
    op.execute('CREATE INDEX ix_users_login_key_c ON users (login_key COLLATE "C")')
    op.execute('CREATE INDEX ix_users_nick_c ON users (lower(nick) COLLATE "C")')
