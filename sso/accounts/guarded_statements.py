"""Statements that issue sessions or tokens to users who were read earlier, unless they were revoked in the meantime.

Each statement locks the users first, in the order of their ids to avoid deadlocks. A concurrent revocation waits for
this lock: it then finds and deletes what was issued, and sets ``valid_from`` to a later time than ``now()`` here.
"""

from collections.abc import Mapping

from sso.db.batch.skip_locked import SkipLockedBatch
from sso.db.batch.statement import BatchStatement
from sso.db.database import Database

NOW = "CAST(floor(extract(epoch FROM now())) AS bigint)"


NO_APPLICATION = "CAST(ARRAY[] AS int[])"


def guarded_by_user(
    database: Database, name: str, issue: str, columns: Mapping[str, str], applications: str = NO_APPLICATION
) -> SkipLockedBatch:
    """Returns a batch whose items have the given columns, among them ``user_id`` and ``valid_from``.

    ``name`` is the name of the statement in logs and traces. ``issue`` is SQL that follows the CTEs of the guard and
    reads ``valid_items``. An item whose user is disabled, is banned or was revoked gets no row and has no effect.
    ``applications`` is the SQL of the applications that an item is for: bans there count, too.
    """
    sql = f"""WITH item AS (
            SELECT * FROM {{items}}
        ), valid_users AS (
            -- The users of the items, locked against revocation.
            SELECT user_id, valid_from, bans FROM users WHERE user_id = ANY (ARRAY(SELECT user_id FROM item))
                AND NOT disabled ORDER BY user_id FOR SHARE {{if_locked}}
        ), valid_items AS (
            -- The items whose user has not been revoked since the caller read it.
            SELECT item.* FROM item JOIN valid_users USING (user_id, valid_from)
            WHERE ban_in_force(valid_users.bans, {applications}) IS NULL
        ) {issue}"""
    return SkipLockedBatch(database, BatchStatement(sql, {"user_id": "text", "valid_from": "bigint", **columns}, name))
