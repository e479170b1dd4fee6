"""Game sessions and violations."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "game_sessions",
        sa.Column("gsid", sa.Text(), nullable=False),
        sa.Column("location", sa.LargeBinary(), nullable=False),
        sa.Column("match", sa.Text(), server_default="", nullable=False),
        sa.Column("address", sa.Text(), server_default="", nullable=False),
        sa.Column("public_key", sa.LargeBinary(), nullable=True),
        sa.Column("distr", sa.Text(), server_default="", nullable=False),
        sa.Column("factor", sa.Text(), server_default="", nullable=False),
        sa.Column("jwt_public_key", sa.Text(), server_default="", nullable=False),
        sa.Column("app_id", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("gapp_id", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("nojwt", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("short_token", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("fixed_ips", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
        sa.Column("with_meta", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("with_email", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("ends", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.Column("status", sa.Text(), server_default="pending", nullable=False),
        sa.Column("state", sa.Text(), server_default="", nullable=False),
        sa.Column("stage", sa.Text(), server_default="", nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("valid_from", sa.BigInteger(), nullable=True),
        sa.Column("poll", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("claimed_poll", sa.Integer(), nullable=True),
        sa.Column("held_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("retry_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("burst", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("burst_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("socket", sa.Text(), nullable=True),
        sa.Column("last_seen", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancels", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.user_id"], name=op.f("fk_game_sessions_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("gsid", name=op.f("pk_game_sessions")),
        postgresql_with={"fillfactor": "70"},
    )
    op.create_index("ix_game_sessions_expires", "game_sessions", ["expires"], unique=False)
    op.create_index("ix_game_sessions_user_id", "game_sessions", ["user_id"], unique=False)
    op.create_table(
        "game_violations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("gsid", sa.Text(), server_default="", nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("expected", sa.Text(), server_default="", nullable=False),
        sa.Column("found", sa.Text(), server_default="", nullable=False),
        sa.Column("address", sa.Text(), server_default="", nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_game_violations")),
    )
    op.create_index("ix_game_violations_expires", "game_violations", ["expires"], unique=False)
