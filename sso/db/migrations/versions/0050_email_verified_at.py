"""When the address of an account was verified: a reset of the password removes identities that were linked before."""

import sqlalchemy as sa
from alembic import op

revision = "0050"
down_revision = "0049"
oldest_program = "0049"


def upgrade() -> None:
    op.add_column("users", sa.Column("email_verified_at", sa.DateTime(timezone=True), nullable=True))
    # The history says it for the last weeks. An address that was verified before has been the user's for long enough.
    op.execute(
        """UPDATE users u SET email_verified_at = greatest(u.reg_time, (
            SELECT max(e.at) FROM account_events e
            WHERE e.user_id = u.user_id AND e.kind IN ('email_verified', 'email_changed', 'email_change_undone')))
        WHERE email_verified"""
    )
    # Every statement that verifies or changes an address is covered, also those of other programs and versions.
    op.execute(
        """CREATE FUNCTION set_email_verified_at() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF NOT NEW.email_verified THEN
                NEW.email_verified_at := NULL;
            ELSIF TG_OP = 'INSERT' OR NOT OLD.email_verified OR OLD.login_key <> NEW.login_key THEN
                NEW.email_verified_at := now();
            END IF;
            RETURN NEW;
        END $$"""
    )
    op.execute(
        """CREATE TRIGGER users_email_verified_at BEFORE INSERT OR UPDATE OF login_key, email_verified ON users
        FOR EACH ROW EXECUTE FUNCTION set_email_verified_at()"""
    )
