"""Logins beside user ids, for callers who see users."""

from collections.abc import Iterable

from sso.accounts import user_directory_store
from sso.admin.request import AdminRequest
from sso.db.database import Database


async def read_logins(request: AdminRequest, database: Database, user_ids: Iterable[str]) -> dict[str, str] | None:
    """Returns the logins by user id. Returns None if the caller may not see users."""
    return await user_directory_store.read_logins(database, user_ids) if request.caller.sees_users else None
