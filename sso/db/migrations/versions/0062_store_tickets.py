"""Identity providers that verify tickets of stores."""

import sqlalchemy as sa
from alembic import op

revision = "0062"
down_revision = "0061"
oldest_program = "0049"


def upgrade() -> None:
    for name in ("jwks_uri", "ticket_identity", "certificates"):
        op.add_column("identity_providers", sa.Column(name, sa.Text(), nullable=False, server_default=""))
    op.add_column(
        "identity_providers", sa.Column("create_users", sa.Boolean(), nullable=False, server_default=sa.text("false"))
    )
    op.add_column(
        "identity_providers", sa.Column("max_age", sa.BigInteger(), nullable=False, server_default=sa.text("0"))
    )
