"""Logos of the stored brand have a table: an undo finds an earlier one."""

import sqlalchemy as sa
from alembic import op

revision = "0059"
down_revision = "0058"
oldest_program = "0049"


def upgrade() -> None:
    op.create_table(
        "brand_logos",
        sa.Column("logo_id", sa.Text(), primary_key=True),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
    )
