"""The audit trail names the service client that made a change."""

from alembic import op

revision = "0053"
down_revision = "0052"
oldest_program = "0049"


def upgrade() -> None:
    op.execute("ALTER TABLE audit ADD COLUMN client_id text")
