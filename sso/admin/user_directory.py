"""Finds users for the management API: by prefix, page by page. The indexes make it fast with a million users."""

from dataclasses import dataclass

from sso.accounts.model import User, login_key, stored_login
from sso.core.ids import is_user_id
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row

LAST_CHARACTER = "\U0010ffff"  # sorts after all others
MIN_NICK_PREFIX = 3  # shorter ones match too many nicknames

_PAGE = Statement(
    """SELECT * FROM users WHERE login_key COLLATE "C" > :after ORDER BY login_key COLLATE "C" LIMIT :limit"""
)
# The array makes PostgreSQL look the users up by id; with IN, it would read all users in the order of their logins.
# Each part of the union reads an index in its order and stops at the limit, or reads the users of one nickname prefix.
_SEARCH = Statement(
    """SELECT * FROM users WHERE user_id = ANY (ARRAY(
        (SELECT user_id FROM users WHERE login_key COLLATE "C" >= :prefix AND login_key COLLATE "C" < :prefix_end
            AND login_key COLLATE "C" > :after ORDER BY login_key COLLATE "C" LIMIT :limit)
        UNION
        (SELECT user_id FROM (
            SELECT user_id, login_key FROM users WHERE :search_nick AND lower(nick) COLLATE "C" >= :nick
                AND lower(nick) COLLATE "C" < :nick_end AND login_key COLLATE "C" > :after OFFSET 0
            ) named ORDER BY login_key COLLATE "C" LIMIT :limit)
        UNION
        (SELECT user_id FROM users WHERE user_id = :user_id AND login_key COLLATE "C" > :after)
    )) ORDER BY login_key COLLATE "C" LIMIT :limit"""
)


@dataclass(frozen=True)
class UserPage:
    users: list[User]
    next_after: str | None


class UserDirectory:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, search: str, after: str, limit: int) -> UserPage:
        """Returns the users after the login key ``after``, in the order of login keys.

        ``search`` is the beginning of a login or nickname, in any case, or a user id.
        """
        rows = await self._rows(search, after, limit + 1)
        users = [User.from_row(row) for row in rows[:limit]]
        return UserPage(users, users[-1].login_key if len(rows) > limit else None)

    async def _rows(self, search: str, after: str, limit: int) -> list[Row]:
        if not search:
            return await self._database.rows(_PAGE, after=after, limit=limit)
        prefix, nick = login_key(search), stored_login(search).lower()
        return await self._database.rows(
            _SEARCH,
            prefix=prefix,
            prefix_end=prefix + LAST_CHARACTER,
            search_nick=len(nick) >= MIN_NICK_PREFIX,
            nick=nick,
            nick_end=nick + LAST_CHARACTER,
            user_id=search if is_user_id(search) else "",
            after=after,
            limit=limit,
        )
