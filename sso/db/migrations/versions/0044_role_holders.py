"""An index for the pages of users who hold a role."""

from alembic import op

revision = "0044"
down_revision = "0043"
oldest_program = "0020"


def upgrade() -> None:
    op.create_index("ix_role_assignments_holders", "role_assignments", ["application_id", "name", "user_id"])
