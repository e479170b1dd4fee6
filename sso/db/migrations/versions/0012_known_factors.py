"""Factors with which game clients have signed in: their failed attempts have a counter of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_table(
        "known_factors",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.user_id"], name=op.f("fk_known_factors_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_known_factors")),
    )
    op.create_index("ix_known_factors_user_id", "known_factors", ["user_id"])
    op.create_index("ix_known_factors_expired", "known_factors", [sa.text("(expires AT TIME ZONE 'UTC')")])
