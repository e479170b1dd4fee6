"""Projects have a name for people, users have accepted terms, and the brand of the service can be stored."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0055"
down_revision = "0054"
oldest_program = "0049"


def upgrade() -> None:
    op.add_column("projects", sa.Column("display_name", sa.Text(), nullable=False, server_default=""))
    op.add_column("users", sa.Column("terms_version", sa.Text(), nullable=False, server_default=""))
    op.add_column("users", sa.Column("terms_accepted", sa.DateTime(timezone=True)))
    op.create_table(
        "stored_brand",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("texts", JSONB(), nullable=False, server_default=sa.text("'{}'::jsonb")),
        sa.Column("version", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.CheckConstraint("id = 1", name="ck_stored_brand_one_row"),
    )
