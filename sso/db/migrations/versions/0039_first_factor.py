"""The first factor of a login whose second factor is missing."""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
oldest_program = "0020"


def upgrade() -> None:
    op.add_column("login_challenges", sa.Column("auth", sa.Text(), server_default="login", nullable=False))
