"""How the answer to a pending authorization is sent to the client."""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
oldest_program = "0020"


def upgrade() -> None:
    op.add_column("oauth_requests", sa.Column("response_mode", sa.Text(), server_default="query", nullable=False))
