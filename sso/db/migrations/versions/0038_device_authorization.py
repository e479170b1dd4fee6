"""Game sessions of devices: an OAuth client gets tokens when the user has confirmed (RFC 8628)."""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
oldest_program = "0020"


def upgrade() -> None:
    for column in (
        sa.Column("client_id", sa.Text()),
        sa.Column("scopes", sa.ARRAY(sa.Text())),
        sa.Column("user_code", sa.Text()),
        sa.Column("interval_s", sa.Integer()),
        sa.Column("polled_at", sa.DateTime(timezone=True)),
        sa.Column("auth_time", sa.BigInteger()),
        sa.Column("auth", sa.Text()),
        sa.Column("grant_id", sa.Text()),
    ):
        op.add_column("game_sessions", column)
    op.create_foreign_key(
        "fk_game_sessions_client_id", "game_sessions", "oauth_clients", ["client_id"], ["client_id"], ondelete="CASCADE"
    )
    # Partial: the sessions of games are in neither.
    is_device = sa.text("client_id IS NOT NULL")
    op.create_index("ix_game_sessions_client_id", "game_sessions", ["client_id"], postgresql_where=is_device)
    op.create_index(
        "ix_game_sessions_user_code", "game_sessions", ["user_code"], unique=True, postgresql_where=is_device
    )
