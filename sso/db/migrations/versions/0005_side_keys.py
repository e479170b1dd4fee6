"""Additional signing keys, and clients that request their algorithm."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("signing_keys", sa.Column("side", sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.add_column("oauth_clients", sa.Column("id_alg", sa.Text(), server_default="", nullable=False))
