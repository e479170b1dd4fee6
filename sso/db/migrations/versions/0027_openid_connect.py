"""OpenID Connect: attributes of clients, when a profile was changed, and how the user of a grant signed in."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
oldest_program = "0020"


def upgrade() -> None:
    texts = sa.ARRAY(sa.Text())
    op.add_column(
        "oauth_clients",
        sa.Column(
            "grant_types", texts, server_default=sa.text("'{authorization_code,refresh_token}'::text[]"), nullable=False
        ),
    )
    op.add_column(
        "oauth_clients",
        sa.Column("token_endpoint_auth_method", sa.Text(), server_default="", nullable=False),
    )
    op.add_column(
        "oauth_clients",
        sa.Column("post_logout_redirect_uris", texts, server_default=sa.text("'{}'::text[]"), nullable=False),
    )
    op.add_column(
        "oauth_clients",
        sa.Column("origins", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False),
    )
    op.add_column("users", sa.Column("updated", sa.DateTime(timezone=True), nullable=True))
    # Every statement that changes the profile is covered, also those of other programs and versions.
    op.execute(
        """CREATE FUNCTION set_users_updated() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            NEW.updated := now();
            RETURN NEW;
        END $$"""
    )
    op.execute(
        """CREATE TRIGGER users_updated BEFORE UPDATE OF login, nick, lang, email_verified ON users FOR EACH ROW
        WHEN ((OLD.login, OLD.nick, OLD.lang, OLD.email_verified)
            IS DISTINCT FROM (NEW.login, NEW.nick, NEW.lang, NEW.email_verified))
        EXECUTE FUNCTION set_users_updated()"""
    )
    for table in ("oauth_codes", "oauth_grants"):
        op.add_column(table, sa.Column("auth", sa.Text(), server_default="", nullable=False))
