"""Keys of OAuth clients (private_key_jwt), assertions that were used, and the ends of secrets."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
oldest_program = "0020"


def upgrade() -> None:
    op.add_column("oauth_clients", sa.Column("jwks", sa.Text(), server_default="", nullable=False))
    op.add_column("oauth_clients", sa.Column("secret_expires", sa.DateTime(timezone=True), nullable=True))
    op.add_column("oauth_clients", sa.Column("second_expires", sa.DateTime(timezone=True), nullable=True))
    op.create_table(
        "oauth_used_jtis",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_oauth_used_jtis")),
    )
    op.create_index("ix_oauth_used_jtis_expired", "oauth_used_jtis", [sa.text("(expires AT TIME ZONE 'UTC')")])
