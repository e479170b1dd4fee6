"""Sign-ins of programs know whether a second factor was used. Those from before count as without one."""

import sqlalchemy as sa
from alembic import op

revision = "0052"
down_revision = "0051"
oldest_program = "0049"


def upgrade() -> None:
    op.add_column("sign_ins", sa.Column("second_factor", sa.Boolean(), server_default=sa.text("false"), nullable=False))
