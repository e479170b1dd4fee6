"""The look of OAuth clients on the pages of their sign-in."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
oldest_program = "0020"


def upgrade() -> None:
    for name in ("logo_uri", "policy_uri", "tos_uri", "support_uri", "accent", "signin_text"):
        op.add_column("oauth_clients", sa.Column(name, sa.Text(), server_default="", nullable=False))
