"""Game sessions: a poll claims the login for a limited time, until its answer was written."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
oldest_program = "0019"


def upgrade() -> None:
    op.add_column("game_sessions", sa.Column("claim_id", sa.Text()))
    op.add_column("game_sessions", sa.Column("claimed_until", sa.DateTime(timezone=True)))
