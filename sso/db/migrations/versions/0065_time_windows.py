"""Conditions may have time windows, whose begins and ends are events."""

import sqlalchemy as sa
from alembic import op

revision = "0065"
down_revision = "0064"
oldest_program = "0049"


def upgrade() -> None:
    op.create_table(
        "time_window_progress",
        sa.Column("application_id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("moment", sa.BigInteger(), nullable=False),
    )
    op.create_index(
        "ix_roles_time", "roles", ["application_id"], postgresql_where=sa.text("condition @? '$.**.time'::jsonpath")
    )
    op.create_index(
        "ix_user_groups_time",
        "user_groups",
        ["project_id"],
        postgresql_where=sa.text("conditions @? '$.**.time'::jsonpath"),
    )
