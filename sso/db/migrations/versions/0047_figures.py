"""Figures of the service and indexes of the audit trail, for the admin console."""

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"
oldest_program = "0020"

STEPS = ("registered", "opened", "signed_in", "confirmed", "delivered", "closed")


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), server_default=sa.text("0"), nullable=False)


def upgrade() -> None:
    op.create_table(
        "service_figures",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("minute", sa.DateTime(timezone=True), nullable=False),
        _count("value"),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", "minute", name=op.f("pk_service_figures")),
    )
    op.create_table(
        "login_funnel",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("application_id", sa.Integer(), nullable=False),
        sa.Column("store", sa.Text(), server_default="", nullable=False),
        *map(_count, STEPS),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("day", "application_id", "store", name=op.f("pk_login_funnel")),
    )
    for table in ("service_figures", "login_funnel"):
        op.create_index(f"ix_{table}_expired", table, [sa.text("(expires AT TIME ZONE 'UTC')")])
    op.create_index("ix_audit_user_id", "audit", ["user_id", "id"])
    op.create_index("ix_audit_target", "audit", ["target", "id"])
    op.create_index("ix_audit_operation", "audit", ["operation", "id"])
    op.create_index("ix_audit_at", "audit", ["at"])
