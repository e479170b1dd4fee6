"""The stream of changes: events of permissions, users and keys, in the order in which they were committed."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0041"
down_revision = "0040"
oldest_program = "0020"


def upgrade() -> None:
    op.create_table(
        "change_events",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("application_id", sa.Integer(), nullable=True),
        sa.Column("data", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_change_events")),
    )
    op.create_index("ix_change_events_position", "change_events", ["position"], unique=True)
    op.create_index("ix_change_events_application_id", "change_events", ["application_id", "position"])
    op.create_index(
        "ix_change_events_user_id", "change_events", ["user_id"], postgresql_where=sa.text("user_id IS NOT NULL")
    )
    op.create_index("ix_change_events_pending", "change_events", ["id"], postgresql_where=sa.text("position IS NULL"))
    op.create_table(
        "change_stream",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("last_position", sa.BigInteger(), nullable=False),
        sa.Column("trimmed_to", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_change_stream")),
    )
    op.execute(
        """INSERT INTO change_stream (id, last_position, trimmed_to)
        SELECT 1, moment, moment FROM (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)) AS t (moment)"""
    )
