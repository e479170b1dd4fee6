"""Codes and puzzles of the registration of new users."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
oldest_program = "0020"


def upgrade() -> None:
    op.create_table(
        "registration_codes",
        sa.Column("visit", sa.LargeBinary(), nullable=False),
        sa.Column("login", sa.Text(), nullable=False),
        sa.Column("code", sa.LargeBinary(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("visit", name=op.f("pk_registration_codes")),
    )
    op.create_table(
        "used_puzzles",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_used_puzzles")),
    )
    for table in ("registration_codes", "used_puzzles"):
        op.create_index(f"ix_{table}_expired", table, [sa.text("(expires AT TIME ZONE 'UTC')")])
