"""Indexes on what conditions compare: the tags and purchases of users, and the domain of their e-mail address."""

from alembic import op

revision = "0057"
down_revision = "0056"
oldest_program = "0049"


def upgrade() -> None:
    op.create_index("ix_users_tags", "users", ["tags"], postgresql_using="gin")
    op.create_index("ix_users_purchases", "users", ["purchases"], postgresql_using="gin")
    op.execute("CREATE INDEX ix_users_domain ON users (substring(login_key FROM '@([^@]*)$'))")
