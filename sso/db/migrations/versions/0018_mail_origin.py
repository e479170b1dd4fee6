"""Waiting mail: the request that queued it, for the log."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.add_column("outbox", sa.Column("request_id", sa.Text()))
    op.add_column("outbox", sa.Column("trace_id", sa.Text()))
