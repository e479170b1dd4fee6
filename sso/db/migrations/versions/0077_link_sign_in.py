"""A session that links a guest ends with the sign-in of the guest that has opened it."""

import sqlalchemy as sa
from alembic import op

revision = "0077"
down_revision = "0076"
oldest_program = "0049"


def upgrade() -> None:
    op.add_column("game_sessions", sa.Column("link_sign_in", sa.Text()))
