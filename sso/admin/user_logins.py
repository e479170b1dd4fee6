"""Logins beside user ids, for callers who see users."""

from collections.abc import Iterable

from sso.admin.request import AdminRequest
from sso.admin.rights import AdminRight
from sso.db.database import Database
from sso.db.statement import Statement

_LOGINS = Statement("SELECT user_id, login FROM users WHERE user_id = ANY (CAST(:user_ids AS text[]))")


async def read_logins(request: AdminRequest, database: Database, user_ids: Iterable[str]) -> dict[str, str] | None:
    """Returns the logins by user id. Returns None if the caller may not see users."""
    if AdminRight.VIEW_USERS not in request.caller.rights:
        return None
    rows = await database.rows(_LOGINS, user_ids=list(user_ids))
    return {row["user_id"]: row["login"] for row in rows}
