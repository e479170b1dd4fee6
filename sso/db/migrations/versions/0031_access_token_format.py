"""The format of the access tokens of a client: opaque, or a JWT."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
oldest_program = "0020"


def upgrade() -> None:
    op.add_column("oauth_clients", sa.Column("access_token_format", sa.Text(), server_default="opaque", nullable=False))
