"""Wrong second-factor codes are counted per user and factor. Mailed codes are stored as HMACs; old ones end."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "factor_guesses",
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("factor", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("owner_notified", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.user_id"], name=op.f("fk_factor_guesses_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "factor", name=op.f("pk_factor_guesses")),
    )
    op.execute("DELETE FROM email_codes")
