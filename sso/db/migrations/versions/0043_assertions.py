"""Assertions of applications."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0043"
down_revision = "0042"
oldest_program = "0020"


def upgrade() -> None:
    op.add_column(
        "applications", sa.Column("assertions", JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False)
    )
