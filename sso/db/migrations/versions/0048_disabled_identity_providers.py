"""Identity providers can be disabled: nobody signs in with them, and the links of users stay."""

import sqlalchemy as sa
from alembic import op

revision = "0048"
down_revision = "0047"
oldest_program = "0020"


def upgrade() -> None:
    op.add_column(
        "identity_providers", sa.Column("disabled", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
