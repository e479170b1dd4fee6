"""Game sessions: whether meta was sent, and the application ids before a link filled them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.add_column(
        "game_sessions", sa.Column("meta_given", sa.Boolean(), nullable=False, server_default=sa.text("false"))
    )
    op.add_column("game_sessions", sa.Column("bound_apps", ARRAY(sa.Integer())))
