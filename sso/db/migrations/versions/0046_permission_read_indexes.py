"""Indexes for the version of the facts about a user: the groups of a user, and the applications of a project."""

from alembic import op

revision = "0046"
down_revision = "0045"
oldest_program = "0020"


def upgrade() -> None:
    op.create_index("ix_applications_project_id", "applications", ["project_id"])
    op.create_index("ix_group_users_user_id", "group_users", ["user_id"])
