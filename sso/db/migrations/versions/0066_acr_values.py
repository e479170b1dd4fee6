"""A pending authorization keeps how the user must sign in."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0066"
down_revision = "0065"
oldest_program = "0049"


def upgrade() -> None:
    op.add_column(
        "oauth_requests",
        sa.Column("acr_values", ARRAY(sa.Text()), nullable=False, server_default=sa.text("'{}'::text[]")),
    )
