"""Players sign in with keys of their devices."""

import sqlalchemy as sa
from alembic import op

revision = "0061"
down_revision = "0060"
oldest_program = "0049"


def upgrade() -> None:
    now = sa.text("now()")
    op.create_table(
        "device_keys",
        sa.Column("digest", sa.LargeBinary(), primary_key=True),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), sa.ForeignKey("users.user_id", ondelete="CASCADE"), nullable=False),
        sa.Column("algorithm", sa.Text(), nullable=False, server_default=""),
        sa.Column("of_guest", sa.Boolean(), nullable=False, server_default=sa.text("false")),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False, server_default=now),
        sa.Column("last_used", sa.DateTime(timezone=True), nullable=False, server_default=now),
        sa.UniqueConstraint("id", name="uq_device_keys_id"),
    )
    op.create_index("ix_device_keys_user_id", "device_keys", ["user_id"])
    op.create_index("ix_device_keys_of_guest", "device_keys", ["last_used"], postgresql_where=sa.text("of_guest"))
    op.create_table(
        "device_nonces",
        sa.Column("digest", sa.LargeBinary(), primary_key=True),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_device_nonces_expired", "device_nonces", [sa.text("(expires AT TIME ZONE 'UTC')")])
