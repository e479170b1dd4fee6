"""Audit: the operating system account that ran a command."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("audit", sa.Column("operator", sa.Text(), nullable=False, server_default=""))
