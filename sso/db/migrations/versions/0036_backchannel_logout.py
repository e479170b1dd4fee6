"""Back-channel logout: the sites that a browser session has signed in to, and the notifications of its end."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
oldest_program = "0020"


def upgrade() -> None:
    op.add_column("oauth_clients", sa.Column("backchannel_logout_uri", sa.Text(), server_default="", nullable=False))
    op.add_column(
        "oauth_clients",
        sa.Column("backchannel_logout_session_required", sa.Boolean(), server_default="false", nullable=False),
    )
    for table in ("browser_sessions", "oauth_codes", "oauth_grants"):
        op.add_column(table, sa.Column("sid", sa.Text(), nullable=True))
    op.create_table(
        "oauth_site_sessions",
        sa.Column("sid", sa.Text(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["client_id"],
            ["oauth_clients.client_id"],
            name=op.f("fk_oauth_site_sessions_client_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.user_id"], name=op.f("fk_oauth_site_sessions_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("sid", "client_id", name=op.f("pk_oauth_site_sessions")),
    )
    op.create_index("ix_oauth_site_sessions_client_id", "oauth_site_sessions", ["client_id"])
    op.create_index("ix_oauth_site_sessions_user_id", "oauth_site_sessions", ["user_id"])
    op.create_index("ix_oauth_site_sessions_expired", "oauth_site_sessions", [sa.text("(expires AT TIME ZONE 'UTC')")])
    op.create_table(
        "logout_notifications",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("sub", sa.Text(), nullable=False),
        sa.Column("sid", sa.Text(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("next_try", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=True),
        sa.Column("tries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("problem", sa.Text(), server_default="", nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=True),
        sa.Column("trace_id", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["client_id"],
            ["oauth_clients.client_id"],
            name=op.f("fk_logout_notifications_client_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_logout_notifications")),
    )
    op.create_index("ix_logout_notifications_client_id", "logout_notifications", ["client_id"])
    op.create_index("ix_logout_notifications_next_try", "logout_notifications", ["next_try"])
    op.create_index(
        "ix_logout_notifications_expired", "logout_notifications", [sa.text("(expires AT TIME ZONE 'UTC')")]
    )
