"""The tables of the service (0049_tables.sql), the rows that every database contains, and the triggers."""

from pathlib import Path

from alembic import op

from sso.db.migrations.permission_history import create_permission_history

revision = "0049"
down_revision = None

STATEMENTS = Path(__file__).with_suffix(".sql")


def upgrade() -> None:
    for statement in STATEMENTS.read_text().split(";\n"):
        if statement.strip():
            op.execute(statement.replace(":", r"\:"))
    op.execute("INSERT INTO applications (application_id, name) VALUES (1, 'Central')")
    op.execute(
        """INSERT INTO change_stream (id, last_position, trimmed_to)
        SELECT 1, moment, moment FROM (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)) AS t (moment)"""
    )
    _keep_time_of_changes()
    create_permission_history()


def _keep_time_of_changes() -> None:
    """The claim ``updated_at`` of a user."""
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
