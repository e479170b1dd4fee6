"""Sign-in notices: whether a user wants them, and when the user signed in for the first time."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
oldest_program = "0020"


def upgrade() -> None:
    op.add_column("users", sa.Column("sign_in_notices", sa.Boolean(), server_default=sa.text("true"), nullable=False))
    op.add_column("users", sa.Column("first_sign_in", sa.DateTime(timezone=True), nullable=True))
