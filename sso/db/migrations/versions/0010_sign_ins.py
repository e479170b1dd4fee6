"""Session tokens belong to a sign-in and share its limits."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

# How the user of an existing token authenticated is unknown. The narrowest assumption is that it was for a game; its
# absolute lifetime starts now.
OLD_TOKENS = (
    "UPDATE session_tokens SET sign_in = left(md5('sign-in' || encode(digest, 'hex')), 16)",
    """INSERT INTO sign_ins (id, user_id, last_used, expires, auth)
    SELECT sign_in, user_id, now(), max(expires), 'gsid' FROM session_tokens GROUP BY sign_in, user_id""",
)


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "sign_ins",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("created", moment, server_default=sa.text("now()"), nullable=False),
        sa.Column("last_used", moment, nullable=False),
        sa.Column("expires", moment, nullable=False),
        sa.Column("address", sa.Text(), server_default="", nullable=False),
        sa.Column("auth", sa.Text(), server_default="login", nullable=False),
        sa.Column("app_id", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("gapp_id", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("ended", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.user_id"], name="fk_sign_ins_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_sign_ins"),
    )
    op.create_index("ix_sign_ins_user_id", "sign_ins", ["user_id", "last_used"])
    op.create_index("ix_sign_ins_expired", "sign_ins", [sa.text("(expires AT TIME ZONE 'UTC')")])
    op.add_column("session_tokens", sa.Column("sign_in", sa.Text()))
    op.add_column("session_tokens", sa.Column("ips", sa.ARRAY(sa.Text())))
    for name in ("app_id", "gapp_id"):
        op.add_column("session_tokens", sa.Column(name, sa.BigInteger(), server_default=sa.text("0"), nullable=False))
    op.add_column("session_tokens", sa.Column("used", moment, server_default=sa.text("now()"), nullable=False))
    for statement in OLD_TOKENS:
        op.execute(statement)
    op.alter_column("session_tokens", "sign_in", nullable=False)
    op.drop_index("ix_session_tokens_user_id", table_name="session_tokens")
    op.create_index("ix_session_tokens_user_id", "session_tokens", ["user_id", "used", "digest"])
