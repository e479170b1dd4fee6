"""Sign-ins of games know when their user signed in to the browser that confirmed them."""

import sqlalchemy as sa
from alembic import op

revision = "0054"
down_revision = "0053"
oldest_program = "0049"


def upgrade() -> None:
    op.add_column("sign_ins", sa.Column("auth_time", sa.BigInteger()))
