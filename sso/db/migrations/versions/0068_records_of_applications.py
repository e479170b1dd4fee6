"""The records of an application are found by its id, in the order of the users."""

from alembic import op

revision = "0068"
down_revision = "0067"
oldest_program = "0049"


def upgrade() -> None:
    op.create_index("ix_user_records_application", "user_records", ["application_id", "user_id"])
