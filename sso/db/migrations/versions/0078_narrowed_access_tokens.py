"""A refresh may ask for fewer scopes. An access token that has fewer than its grant names them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0078"
down_revision = "0077"
oldest_program = "0049"


def upgrade() -> None:
    op.add_column("oauth_access_tokens", sa.Column("scopes", ARRAY(sa.Text())))
