"""Users can be banned: everywhere, in a project, or at an application."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from sso.db.migrations.permission_history import replace_triggers

revision = "0063"
down_revision = "0062"
oldest_program = "0049"


def upgrade() -> None:
    op.create_table(
        "user_bans",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("application_id", sa.Integer(), sa.ForeignKey("applications.application_id")),
        sa.Column("project_id", sa.Text(), sa.ForeignKey("projects.id")),
        sa.Column("until", sa.BigInteger()),
        sa.Column("reason", sa.Text(), nullable=False, server_default=""),
        sa.Column("note", sa.Text(), nullable=False, server_default=""),
        sa.Column("author", sa.Text(), nullable=False, server_default=""),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False, server_default=sa.text("now()")),
    )
    op.create_index("ix_user_bans_user_id", "user_bans", ["user_id"])
    op.create_index("ix_user_bans_until", "user_bans", ["until"], postgresql_where=sa.text("until IS NOT NULL"))
    op.create_table(
        "banned_identities",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("ban_id", sa.Text(), sa.ForeignKey("user_bans.id", ondelete="CASCADE"), nullable=False),
        sa.PrimaryKeyConstraint("digest", "ban_id", name="pk_banned_identities"),
    )
    op.create_index("ix_banned_identities_ban_id", "banned_identities", ["ban_id"])
    op.add_column("users", sa.Column("bans", JSONB()))
    op.create_index("ix_users_banned", "users", ["user_id"], postgresql_where=sa.text("bans IS NOT NULL"))
    op.add_column("game_sessions", sa.Column("viewer", sa.Text()))
    op.add_column("game_sessions", sa.Column("ban", JSONB()))
    op.create_index("ix_game_sessions_viewer", "game_sessions", ["viewer"])
    # STRICT: it is not called for users without bans, who have NULL. The rule in Python is sso/core/ban.py.
    op.execute(
        """CREATE FUNCTION ban_in_force(bans jsonb, applications int[]) RETURNS jsonb LANGUAGE sql STABLE STRICT AS $$
        SELECT ban FROM jsonb_array_elements(bans) ban
        WHERE coalesce((ban ->> 'until')::bigint > extract(epoch FROM now()), true) AND CASE
            WHEN ban ->> 'application_id' IS NOT NULL THEN (ban ->> 'application_id')::int = ANY (applications)
            WHEN ban ->> 'project_id' IS NOT NULL THEN EXISTS (
                SELECT FROM applications a
                WHERE a.application_id = ANY (applications) AND a.project_id = ban ->> 'project_id')
            ELSE true END
        ORDER BY coalesce((ban ->> 'until')::bigint, 4611686018427387904) DESC LIMIT 1 $$"""
    )
    replace_triggers("users")
