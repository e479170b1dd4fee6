"""OAuth: ui_locales of an authorization request."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("oauth_requests", sa.Column("ui_locales", sa.Text(), server_default="", nullable=False))
