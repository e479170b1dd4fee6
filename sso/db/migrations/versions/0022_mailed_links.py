"""Links that are sent by mail, and the HTML form of a mail."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0022"
down_revision = "0021"
oldest_program = "0020"


def upgrade() -> None:
    op.create_table(
        "mailed_links",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("data", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.user_id"], name=op.f("fk_mailed_links_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_mailed_links")),
    )
    op.create_index("ix_mailed_links_user_id", "mailed_links", ["user_id"])
    op.create_index("ix_mailed_links_expired", "mailed_links", [sa.text("(expires AT TIME ZONE 'UTC')")])
    op.add_column("outbox", sa.Column("html_sealed", sa.Text(), nullable=True))
