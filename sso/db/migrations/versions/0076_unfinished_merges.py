"""The job that finishes merges finds those that are not finished by an index, and not the finished ones each time."""

import sqlalchemy as sa
from alembic import op

revision = "0076"
down_revision = "0075"
oldest_program = "0049"


def upgrade() -> None:
    op.create_index(
        "ix_user_merges_unfinished", "user_merges", ["at"], postgresql_where=sa.text("moved <> '{}'::jsonb")
    )
    op.execute("DROP INDEX ix_user_merges_at")
