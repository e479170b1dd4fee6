"""Indexes that find expired rows and that only the cleanup can use."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

TABLES = (
    "browser_sessions",
    "login_challenges",
    "session_tokens",
    "throttle",
    "game_sessions",
    "game_violations",
    "oauth_requests",
    "oauth_codes",
    "oauth_grants",
    "oauth_access_tokens",
)


def upgrade() -> None:
    for table in TABLES:
        op.create_index(f"ix_{table}_expired", table, [sa.text("(expires AT TIME ZONE 'UTC')")])
    # Last, because it locks out readers until the end of the transaction.
    for table in TABLES:
        op.drop_index(f"ix_{table}_expires", table_name=table)
