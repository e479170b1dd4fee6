"""Game sessions: the worker that holds the newest poll."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.add_column("game_sessions", sa.Column("poll_holder", sa.Text()))
