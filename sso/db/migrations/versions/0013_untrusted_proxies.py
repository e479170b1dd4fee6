"""Peers that sent forwarding headers but are not trusted proxies, for `sso doctor`."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.create_table(
        "untrusted_proxies",
        sa.Column("peer", sa.Text(), nullable=False),
        sa.Column("header", sa.Text(), server_default="", nullable=False),
        sa.Column("last_seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("peer", name=op.f("pk_untrusted_proxies")),
    )
    op.create_index("ix_untrusted_proxies_expired", "untrusted_proxies", [sa.text("(expires AT TIME ZONE 'UTC')")])
