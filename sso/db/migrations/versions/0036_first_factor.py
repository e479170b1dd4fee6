"""The first factor of a login whose second factor is missing."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
oldest_program = "0020"


def upgrade() -> None:
    op.add_column("login_challenges", sa.Column("auth", sa.Text(), server_default="login", nullable=False))
