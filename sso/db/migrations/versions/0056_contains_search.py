"""Searches by a part of a text, and lists of users in other orders.

The function needs no extension, which the server may lack: an index of its arrays finds the texts that contain all
trigrams of a search. A short list of pending entries keeps searches fast after many changes.
"""

from alembic import op

revision = "0056"
down_revision = "0055"
oldest_program = "0049"


def upgrade() -> None:
    op.execute(
        """CREATE FUNCTION search_trigrams(first text, second text) RETURNS text[]
        LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
        DECLARE
            value text := first || ' ' || second;
            found text[] := '{}';
        BEGIN
            FOR n IN 1 .. length(value) - 2 LOOP
                found[n] := substr(value, n, 3);
            END LOOP;
            RETURN found;
        END $$"""
    )
    op.execute(
        """CREATE INDEX ix_users_search ON users USING gin (search_trigrams(login_key, lower(nick)))
        WITH (gin_pending_list_limit = 256)"""
    )
    op.execute(
        """CREATE INDEX ix_user_groups_search ON user_groups USING gin (search_trigrams(lower(title), id))
        WITH (gin_pending_list_limit = 256)"""
    )
    op.execute("DROP INDEX ix_users_nick_c")
    op.execute("""CREATE INDEX ix_users_nick_c ON users (lower(nick) COLLATE "C", user_id)""")
    op.execute("CREATE INDEX ix_users_reg_time ON users (reg_time, user_id)")
    op.execute("CREATE INDEX ix_users_disabled ON users (user_id) WHERE disabled")
    op.execute("CREATE INDEX ix_users_email_verified ON users (email_verified)")
    op.execute(
        """CREATE INDEX ix_users_two_step ON users (user_id)
        WHERE totp_sealed IS NOT NULL OR email_2fa OR passkey_count > 0"""
    )
