"""Audit: the access key of the request."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("audit", sa.Column("key_id", sa.Text()))
