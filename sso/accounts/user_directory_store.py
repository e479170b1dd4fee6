"""Reads users for administrators: all of them, their number, and those with given ids or logins."""

from collections.abc import Iterable, Sequence

from sso.accounts.model import User, login_key
from sso.db.statement import Statement
from sso.db.transaction import Runner

_ALL = Statement("SELECT * FROM users WHERE login <> '' ORDER BY reg_time, user_id")
_FIND_ID = Statement("SELECT user_id FROM users WHERE user_id = :name OR login_key = :login_key")
_LOGINS = Statement("SELECT user_id, login FROM users WHERE user_id = ANY (CAST(:user_ids AS text[]))")
_COUNT = Statement("SELECT count(*) FROM (SELECT FROM users LIMIT :limit) u")


async def list_users(tx: Runner) -> Sequence[User]:
    """Returns all users but guests, in the order of their registration."""
    return [User.from_row(row) for row in await tx.rows(_ALL)]


async def count_users(tx: Runner, limit: int) -> int:
    """Returns the number of users, counted up to the limit."""
    count: int = await tx.value(_COUNT, limit=limit)
    return count


async def find_user_id(tx: Runner, name: str) -> str | None:
    """Returns the user id for a user id or login. They cannot be confused: only a login contains an ``@``."""
    user_id: str | None = await tx.value(_FIND_ID, name=name, login_key=login_key(name))
    return user_id


async def read_logins(tx: Runner, user_ids: Iterable[str]) -> dict[str, str]:
    """Returns the logins by user id."""
    return {row["user_id"]: row["login"] for row in await tx.rows(_LOGINS, user_ids=list(user_ids))}
