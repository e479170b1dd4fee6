"""Finds users for administrators: by prefix, page by page. The indexes make it fast with a million users."""

from collections.abc import Iterable, Sequence

from sso.accounts.model import User, login_key, stored_login
from sso.core.ids import is_user_id
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner

LAST_CHARACTER = "\U0010ffff"  # sorts after all others
MIN_NICK_PREFIX = 3  # shorter ones match too many nicknames
MAX_SORTED = 5000  # users with a nickname that are sorted for a page

_PAGE = Statement(
    """SELECT * FROM users WHERE login_key COLLATE "C" > :after ORDER BY login_key COLLATE "C" LIMIT :limit"""
)
# The array makes PostgreSQL look the users up by id; with IN, it would read all users in the order of their logins.
# Each part of the union reads an index in its order and stops at the limit, or reads the users of one nickname prefix.
_SEARCH = """SELECT * FROM users WHERE user_id = ANY (ARRAY(
        (SELECT user_id FROM users WHERE login_key COLLATE "C" >= :prefix AND login_key COLLATE "C" < :prefix_end
            AND login_key COLLATE "C" > :after ORDER BY login_key COLLATE "C" LIMIT :limit)
        UNION
        (SELECT user_id FROM ({named}) named ORDER BY login_key COLLATE "C" LIMIT :limit)
        UNION
        (SELECT user_id FROM users WHERE user_id = :user_id AND login_key COLLATE "C" > :after)
    )) ORDER BY login_key COLLATE "C" LIMIT :limit"""
_WITH_NICK = """FROM users WHERE lower(nick) COLLATE "C" >= :nick AND lower(nick) COLLATE "C" < :nick_end"""
# Few users have a rare nickname: an index finds them, and they are sorted. Of many users, the first ones are soon found
# in the order of logins; `left` keeps PostgreSQL from using the index on nicknames.
_SEARCH_RARE = Statement(
    _SEARCH.format(
        named=f'SELECT user_id, login_key {_WITH_NICK} AND :search_nick AND login_key COLLATE "C" > :after OFFSET 0'
    )
)
_SEARCH_FREQUENT = Statement(
    _SEARCH.format(
        named="""SELECT user_id, login_key FROM users WHERE login_key COLLATE "C" > :after
            AND left(lower(nick), CAST(:nick_length AS int)) COLLATE "C" = :nick
            ORDER BY login_key COLLATE "C" LIMIT :limit"""
    )
)
_IS_FREQUENT = Statement(f"SELECT count(*) > {MAX_SORTED} FROM (SELECT {_WITH_NICK} LIMIT {MAX_SORTED + 1}) named")
_ALL = Statement("SELECT * FROM users ORDER BY reg_time, user_id")
_FIND_ID = Statement("SELECT user_id FROM users WHERE user_id = :name OR login_key = :login_key")
_LOGINS = Statement("SELECT user_id, login FROM users WHERE user_id = ANY (CAST(:user_ids AS text[]))")
_COUNT = Statement("SELECT count(*) FROM (SELECT FROM users LIMIT :limit) u")


class UserDirectory:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, search: str, after: str, limit: int) -> list[User]:
        """Returns the users after the login key ``after``, in the order of login keys.

        ``search`` is the beginning of a login or nickname, in any case, or a user id.
        """
        return [User.from_row(row) for row in await self._rows(search, after, limit)]

    async def _rows(self, search: str, after: str, limit: int) -> list[Row]:
        if not search:
            return await self._database.rows(_PAGE, after=after, limit=limit)
        prefix, nick = login_key(search), stored_login(search).lower()
        values = {
            "prefix": prefix,
            "prefix_end": prefix + LAST_CHARACTER,
            "nick": nick,
            "user_id": search if is_user_id(search) else "",
            "after": after,
            "limit": limit,
        }
        nick_end = nick + LAST_CHARACTER
        search_nick = len(nick) >= MIN_NICK_PREFIX
        if search_nick and await self._database.value(_IS_FREQUENT, nick=nick, nick_end=nick_end):
            return await self._database.rows(_SEARCH_FREQUENT, **values, nick_length=len(nick))
        return await self._database.rows(_SEARCH_RARE, **values, nick_end=nick_end, search_nick=search_nick)


async def list_users(tx: Runner) -> Sequence[User]:
    """Returns all users, in the order of their registration."""
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
