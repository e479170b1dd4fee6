"""Webhooks: addresses that events of the stream of changes are sent to, and events that could not be delivered."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

revision = "0045"
down_revision = "0044"
oldest_program = "0020"

NOW = sa.text("now()")


def upgrade() -> None:
    op.create_table(
        "webhooks",
        sa.Column("webhook_id", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret_sealed", sa.Text(), nullable=False),
        sa.Column("events", ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
        sa.Column("disabled", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("lease", sa.Text(), server_default="", nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.Column("tries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_try", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.Column("failing_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("problem", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("webhook_id", name=op.f("pk_webhooks")),
    )
    op.create_table(
        "webhook_failures",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("webhook_id", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("application_id", sa.Integer(), nullable=True),
        sa.Column("data", JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("failed_at", sa.DateTime(timezone=True), server_default=NOW, nullable=False),
        sa.Column("tries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("problem", sa.Text(), server_default="", nullable=False),
        sa.Column("retry_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.webhook_id"], name=op.f("fk_webhook_failures_webhook_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_failures")),
    )
    op.create_index("ix_webhook_failures_webhook_id", "webhook_failures", ["webhook_id", "id"])
    op.create_index(
        "ix_webhook_failures_user_id", "webhook_failures", ["user_id"], postgresql_where=sa.text("user_id IS NOT NULL")
    )
    op.create_index(
        "ix_webhook_failures_retry_at",
        "webhook_failures",
        ["retry_at"],
        postgresql_where=sa.text("retry_at IS NOT NULL"),
    )
    op.create_index("ix_webhook_failures_expired", "webhook_failures", [sa.text("(expires AT TIME ZONE 'UTC')")])
