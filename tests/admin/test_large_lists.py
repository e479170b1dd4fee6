"""Lists of many records: searches and filters find the same records whichever statement finds them, in every order."""

from collections.abc import Callable
from typing import Any

import pytest

from sso.accounts import user_search_store
from sso.accounts.user_search_store import UserDirectory, UserFilters
from sso.db.database import Database
from sso.db.sorted_pages import PageQuery
from sso.db.statement import Statement
from sso.perm.stores.group_directory import MAX_SORTED_GROUPS, find_group_page

_USERS = Statement(
    """INSERT INTO users (user_id, login, login_key, nick, disabled, email_verified, reg_time)
    SELECT CAST(70000 + n AS text), login, login, CASE WHEN n % 125 = 0 THEN 'Rare' ELSE 'Many' END || n % 225,
        n % 175 = 0, n % 2 = 0, now() - n % 50 * interval '1 hour'
    FROM generate_series(1, CAST(:count AS int)) n, CAST(md5(CAST(n AS text)) || '@example.com' AS text) login"""
)
_PROJECT = Statement("INSERT INTO projects (id, title) VALUES ('large', 'Large')")
_GROUPS = Statement(
    """INSERT INTO user_groups (id, project_id, title)
    SELECT md5(CAST(n AS text)), 'large', CASE WHEN n % 300 = 0 THEN 'Selten Ä' ELSE 'Viele ' END || n
    FROM generate_series(1, CAST(:count AS int)) n"""
)


_ADD_USER = Statement(
    """INSERT INTO users (user_id, login, login_key, nick, reg_time)
    SELECT :user_id, :user_id || '@added.example', :user_id || '@added.example', 'Many', now()"""
)
PAGE = 13
SORTS: dict[str, Callable[[Any], Any]] = {
    "": lambda row: row["login_key"],
    "nick": lambda row: (row["nick"].lower(), row["user_id"]),
    "reg_time": lambda row: (row["reg_time"], row["user_id"]),
}


@pytest.fixture
async def users(database: Database, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Many users for these limits."""
    for name, limit in (("WINDOW", 50), ("LATER_WINDOWS", (100, 200)), ("MAX_SORTED", 75)):
        monkeypatch.setattr(user_search_store, name, limit)
    await database.rows(_USERS, count=1000)
    return await database.rows(Statement("SELECT * FROM users"))


def contains(search: str) -> Callable[[Any], bool]:
    return lambda row: search in row["login_key"] or search in row["nick"].lower()


CASES: list[tuple[str, UserFilters, Callable[[Any], bool]]] = [
    ("", UserFilters(), lambda _row: True),
    ("MANY", UserFilters(), contains("many")),
    ("any1", UserFilters(), contains("any1")),
    ("rare", UserFilters(), contains("rare")),
    ("ample.com", UserFilters(), contains("ample.com")),
    ("rare", UserFilters(verified=False), lambda row: contains("rare")(row) and not row["email_verified"]),
    ("none", UserFilters(), lambda _row: False),
    ("ab", UserFilters(), lambda row: row["login_key"].startswith("ab")),
    ("70123", UserFilters(), lambda row: row["user_id"] == "70123" or contains("70123")(row)),
    ("", UserFilters(status="disabled"), lambda row: row["disabled"]),
    ("", UserFilters(status="active", verified=True), lambda row: row["email_verified"] and not row["disabled"]),
    ("many", UserFilters(two_step=True), lambda _row: False),
    ("", UserFilters(user_ids=["70001", "70002"]), lambda row: row["user_id"] in ("70001", "70002")),
]


@pytest.mark.parametrize("sort", SORTS)
async def test_users_are_found_page_by_page_in_every_order(database: Database, users: list[Any], sort: str) -> None:
    directory, added = UserDirectory(database), 0
    for search, filters, matches in CASES:
        for descending in (False, True):
            expected = sorted(filter(matches, users), key=SORTS[sort], reverse=descending)[: 2 * PAGE]
            found: list[str] = []
            after: str | None = ""
            while after is not None and len(found) < 2 * PAGE:
                page = await directory.page(PageQuery(PAGE, search, sort, descending, after), filters)
                found += [user.user_id for user in page.records]
                after = page.next
                added += 1
                await database.row(_ADD_USER, user_id=str(10**9 + added))  # repeats and shifts nobody
            stored = [user_id for user_id in found if int(user_id) < 10**9][: 2 * PAGE]
            assert stored == [row["user_id"] for row in expected][: len(stored)], (search, filters, descending)
            assert len(stored) == len(expected) or after is not None, (search, filters, descending)


async def test_groups_are_found_by_title_page_by_page(database: Database) -> None:
    await database.rows(_PROJECT)
    await database.rows(_GROUPS, count=MAX_SORTED_GROUPS + 100)
    rows = await database.rows(Statement("SELECT id, title FROM user_groups ORDER BY id"))
    by_title = sorted(rows, key=lambda row: (row["title"].lower(), row["id"]), reverse=True)
    for search, matches in (
        ("iele", 2093),
        ("ten ä", 7),
        ("VIELE 7", None),
        ("none", 0),
        ("", 2100),
        ("vi", 2093),
        ("se", 7),
    ):
        expected = [row["id"] for row in rows if search.lower() in row["title"].lower()]
        assert matches in (None, len(expected))
        for project_id in (None, "large"):
            found: list[str] = []
            after: str | None = ""
            while after is not None and len(found) < 100:
                page = await find_group_page(database, PageQuery(50, search, after=after), project_id, None)
                found += [row["id"] for row in page.records]
                after = page.next
            assert found == expected[:100], search
        titled = await find_group_page(database, PageQuery(50, search, "title", descending=True), "large", None)
        named = set(expected)
        assert [row["id"] for row in titled.records] == [row["id"] for row in by_title if row["id"] in named][:50], (
            search
        )
