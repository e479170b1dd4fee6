"""Heartbeats of the workers of all nodes, and the node whose file a key of an application comes from."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
oldest_program = "0020"


def upgrade() -> None:
    op.create_table(
        "node_workers",
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("schema_version", sa.Text(), nullable=False),
        sa.Column("base_url", sa.Text(), nullable=False),
        sa.Column("master_keys", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
        sa.Column("workers", sa.Integer(), nullable=False),
        sa.Column("held_polls", sa.Integer(), nullable=False),
        sa.Column("sockets", sa.Integer(), nullable=False),
        sa.Column("clock_offset", sa.Float(), nullable=False),
        sa.Column("started", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("worker", name=op.f("pk_node_workers")),
    )
    op.create_index("ix_node_workers_expired", "node_workers", [sa.text("(expires AT TIME ZONE 'UTC')")])
    op.add_column("application_keys", sa.Column("node", sa.Text(), server_default="", nullable=False))
