"""A player decides about a store account that is linked to another account. A sign-in knows the key that made it."""

import sqlalchemy as sa
from alembic import op

revision = "0067"
down_revision = "0066"
oldest_program = "0049"


def upgrade() -> None:
    op.add_column("sign_ins", sa.Column("device_key", sa.LargeBinary()))
    op.create_table(
        "link_conflicts",
        sa.Column("user_id", sa.Text(), sa.ForeignKey("users.user_id", ondelete="CASCADE"), primary_key=True),
        sa.Column("link_id", sa.Text(), sa.ForeignKey("linked_identities.id", ondelete="CASCADE"), nullable=False),
        sa.Column("browser", sa.LargeBinary()),
        sa.Column("valid_from", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_link_conflicts_link_id", "link_conflicts", ["link_id"])
    op.create_index("ix_link_conflicts_browser", "link_conflicts", ["browser"])
    op.create_index("ix_link_conflicts_expired", "link_conflicts", [sa.text("(expires AT TIME ZONE 'UTC')")])
