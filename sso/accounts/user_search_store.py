"""Finds users for administrators, page by page in several orders: by a part of a login or nickname, and by filters.

Three ways keep it fast with a million users, whatever is searched for:

* What many users match is soon found in the order of the list, so the first users of the page are looked at first.
* What few users match is found by an index, and sorted. Of the trigrams of a search, the index gets those that are
  rare among some users: frequent ones take long and exclude few.
* Otherwise the search goes on in the order of the list. It is bounded: a page may then have fewer users, or none,
  and a `next` at which the search continues.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from sso.accounts.model import User, login_key, stored_login
from sso.core.ids import is_user_id
from sso.db.database import Database
from sso.db.sorted_pages import ListOrder, Page, PageQuery, SortColumn
from sso.db.statement import Statement
from sso.db.transaction import Row

LAST_CHARACTER = "\U0010ffff"  # sorts after all others
MIN_PART = 3  # shorter searches are for the beginning of a login
MAX_SORTED = 20_000  # users who are sorted for a page
WINDOW = 2000  # users whom the first statement looks at in the order of the list
LATER_WINDOWS = (8000, 16_000)  # and the others of the same page
SAMPLE = 250  # of the oldest users, and of the newest ones
MAX_IN_SAMPLE = 300  # more users with the rarest trigram of a search mean that an index does not help

KEY = SortColumn("user_id", is_unique=True)
SORTS = {
    "": SortColumn('login_key COLLATE "C"', is_unique=True),
    "login": SortColumn('login_key COLLATE "C"', is_unique=True),
    "nick": SortColumn('lower(nick) COLLATE "C"'),
    "reg_time": SortColumn("reg_time", "time"),
}
_TRIGRAMS = "search_trigrams(login_key, lower(nick))"
_TWO_STEP = "(totp_sealed IS NOT NULL OR email_2fa OR passkey_count > 0)"
_MATCHES = f"""(CAST(:status AS text) IS NULL OR CASE :status WHEN 'active' THEN NOT disabled
            WHEN 'disabled' THEN disabled AND deletion_due IS NULL WHEN 'banned' THEN bans IS NOT NULL
            ELSE deletion_due IS NOT NULL END)
        AND (CAST(:verified AS bool) IS NULL OR email_verified = :verified)
        AND (CAST(:two_step AS bool) IS NULL OR {_TWO_STEP} = :two_step)
        AND (CAST(:user_ids AS text[]) IS NULL OR user_id = ANY (CAST(:user_ids AS text[])))
        AND (strpos(login_key, :login_part) > 0 OR strpos(lower(nick), lower(:nick_part)) > 0 OR user_id = :user_id)"""
# For short searches. Others must not have it: PostgreSQL would take the range for a small one.
_IN_RANGE = """login_key COLLATE "C" >= :prefix AND login_key COLLATE "C" < :prefix_end"""
# Conditions that an index answers, and that few users may meet.
_SOURCES = {
    "user_ids": "user_id = ANY (CAST(:user_ids AS text[]))",
    "closed": "deletion_due IS NOT NULL",
    "disabled": "disabled",
    "banned": "bans IS NOT NULL",
    "part": f"({_TRIGRAMS} @> :login_trigrams OR {_TRIGRAMS} @> :nick_trigrams OR user_id = :user_id)",
    "prefix": "TRUE",
    "two_step": _TWO_STEP,
    "verified": "email_verified = :verified",
}
_RAREST = Statement(
    f"""WITH sample AS MATERIALIZED (
        (SELECT login_key || ' ' || lower(nick) AS text FROM users ORDER BY reg_time LIMIT {SAMPLE})
        UNION ALL (SELECT login_key || ' ' || lower(nick) FROM users ORDER BY reg_time DESC LIMIT {SAMPLE})
    ) SELECT trigram, (SELECT count(*) FROM sample WHERE strpos(text, trigram) > 0) AS count
    FROM generate_series(1, length(lower(:part)) - 2) AS n, substr(lower(:part), n, 3) AS trigram
    ORDER BY count LIMIT 4"""
)
# The range of a short search excludes the user with this id.
_BY_SHORT_ID = Statement(f"SELECT user_id, login_key AS sort_value FROM users WHERE user_id = :user_id AND {_MATCHES}")
_READ = Statement("SELECT * FROM users WHERE user_id = ANY (CAST(:ids AS text[]))")


class UserFilters(Struct, frozen=True):
    """None stands for all users."""

    status: str | None = None  # active, disabled, closed, banned
    verified: bool | None = None  # the e-mail address
    two_step: bool | None = None
    user_ids: Sequence[str] | None = None


class _UserSearch(Struct):
    """One page that is searched for."""

    query: PageQuery
    filters: UserFilters
    order: ListOrder
    found: list[Row] = field(default_factory=list)  # ids with the values that they are sorted by

    @property
    def missing(self) -> int:
        return self.query.limit + 1 - len(self.found)

    @property
    def is_short(self) -> bool:
        """Whether the search is too short for trigrams."""
        search = self.query.search
        return 0 < min(len(login_key(search)), len(stored_login(search))) < MIN_PART

    @property
    def sources(self) -> list[str]:
        """The indexes that can find candidates, those with few of them first."""
        filters = self.filters
        given = {
            "user_ids": filters.user_ids is not None,
            "closed": filters.status == "closed",
            "disabled": filters.status == "disabled",
            "banned": filters.status == "banned",
            "prefix": self.is_short,
            "part": bool(self.query.search) and not self.is_short,
            "two_step": bool(filters.two_step),
            "verified": filters.verified is not None,
        }
        return [name for name, is_given in given.items() if is_given]

    @property
    def values(self) -> dict[str, Any]:
        search, part = self.query.search, login_key(self.query.search)
        return {
            **asdict(self.filters),
            "user_ids": None if self.filters.user_ids is None else list(self.filters.user_ids),
            "login_part": part,
            "nick_part": stored_login(search),
            "user_id": search if is_user_id(search) else "",
            **({"prefix": part, "prefix_end": part + LAST_CHARACTER} if self.is_short else {}),
        }


class UserDirectory:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, query: PageQuery, filters: UserFilters | None = None) -> Page[User]:
        """Returns the users whose login or nickname contains the search, in any case, and the user with this id.

        A search of less than three characters is for the beginning of a login; a user with this id comes first. The
        default order is that of logins. Raises InvalidCursor.
        """
        search = _UserSearch(query, filters or UserFilters(), _order(query.sort, descending=query.descending))
        end = await self._look(search, query.after, WINDOW)
        if end and await self._find(search):
            end = ""
        for window in LATER_WINDOWS if end else ():
            end = await self._look(search, end, window)
            if not end:
                break
        await self._add_short_id(search)
        shown = search.found[: query.limit]
        if len(search.found) > query.limit:
            end = search.order.cursor(shown[-1]["sort_value"], shown[-1]["user_id"])
        rows = {row["user_id"]: row for row in await self._database.rows(_READ, ids=[row["user_id"] for row in shown])}
        return Page([User.from_row(rows[row["user_id"]]) for row in shown if row["user_id"] in rows], end or None)

    async def _look(self, search: _UserSearch, after: str, window: int) -> str:
        """Adds users who match among the next ones of the list. Returns where to continue; "" if it is not needed."""
        statement = _window(search.is_short, search.query.sort, search.query.descending, bool(after))
        values = {**search.values, **search.order.values(after)}
        rows = await self._database.rows(statement, window=window, limit=search.missing, **values)
        search.found += [row for row in rows if row["is_match"]]
        last = rows[-1] if rows else None
        is_done = search.missing <= 0 or last is None or last["is_match"]
        return "" if is_done or last is None else search.order.cursor(last["sort_value"], last["user_id"])

    async def _find(self, search: _UserSearch) -> bool:
        """Finds the users of the page among all who match. Returns False if an index does not find few enough."""
        query, trigrams = search.query, {}
        for source in search.sources:
            if source == "part":
                trigrams = await self._rarest_trigrams(search)
                if not trigrams:
                    continue
            statement = _candidates(source, search.is_short, query.sort, query.descending, bool(query.after))
            values = {**search.values, **trigrams, **search.order.values(query.after)}
            rows = await self._database.rows(statement, most=MAX_SORTED + 1, limit=query.limit + 1, **values)
            if rows[0]["total"] <= MAX_SORTED:
                search.found = [row for row in rows if row["user_id"] is not None]
                return True
            return False
        return False

    async def _add_short_id(self, search: _UserSearch) -> None:
        """Adds the user whose id is a short search to the first page. A page of one user would end with it."""
        values = {name: value for name, value in search.values.items() if not name.startswith("prefix")}
        if search.is_short and values["user_id"] and not search.query.after and search.query.limit > 1:
            rows = await self._database.rows(_BY_SHORT_ID, **values)
            known = {row["user_id"] for row in search.found}
            search.found[:0] = [row for row in rows if row["user_id"] not in known]

    async def _rarest_trigrams(self, search: _UserSearch) -> dict[str, list[str]]:
        """Returns the trigrams by which the index finds the search; none if all of them are frequent."""
        values = search.values
        found = {}
        for name, part in (("login_trigrams", values["login_part"]), ("nick_trigrams", values["nick_part"])):
            rows = await self._database.rows(_RAREST, part=part)
            if rows[0]["count"] > MAX_IN_SAMPLE:
                return {}
            found[name] = [row["trigram"] for row in rows]
        return found


@cache
def _order(sort: str, *, descending: bool) -> ListOrder:
    return ListOrder(KEY, SORTS[sort], descending=descending)


@cache
def _window(is_short: bool, sort: str, descending: bool, has_cursor: bool) -> Statement:
    """Returns the matching ones of the next users, up to the limit, and the last of them if there may be more."""
    order = _order(sort, descending=descending)
    return Statement(
        f"""WITH looked_at AS (
            SELECT user_id, {order.value} AS sort_value, {_MATCHES} AS is_match FROM users
            WHERE {_IN_RANGE if is_short else "TRUE"} AND {order.after(has_cursor=has_cursor)}
            ORDER BY {order.order} LIMIT :window
        ), matching AS (SELECT * FROM looked_at WHERE is_match LIMIT :limit)
        SELECT * FROM matching UNION ALL (SELECT user_id, sort_value, FALSE FROM looked_at
            WHERE (SELECT count(*) FROM matching) < :limit OFFSET CAST(:window AS int) - 1)"""
    )


@cache
def _candidates(source: str, is_short: bool, sort: str, descending: bool, has_cursor: bool) -> Statement:
    """Returns the number of users whom an index finds, up to one too many, and the first of them after the cursor."""
    order = _order(sort, descending=descending)
    column = SortColumn("sort_value", SORTS[sort].kind, is_unique=SORTS[sort].is_unique)
    found = ListOrder(KEY, column, descending=descending)
    return Statement(
        f"""WITH candidates AS MATERIALIZED (
            SELECT user_id, {order.value} AS sort_value FROM users
            WHERE {_SOURCES[source]} AND {_IN_RANGE if is_short else "TRUE"} AND {_MATCHES} LIMIT :most
        ) SELECT * FROM (SELECT count(*) AS total FROM candidates) counted LEFT JOIN LATERAL (
            SELECT * FROM candidates WHERE {found.after(has_cursor=has_cursor)} ORDER BY {found.order} LIMIT :limit
        ) shown ON TRUE ORDER BY {found.order}"""
    )
