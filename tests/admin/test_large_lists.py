"""Searches that choose between two statements: few matches are sorted, many are found in the order of the list."""

import pytest

from sso.accounts.user_directory_store import MAX_SORTED, UserDirectory
from sso.db.database import Database
from sso.db.statement import Statement
from sso.perm.stores.group_directory import MAX_SORTED_GROUPS, find_group_page

_USERS = Statement(
    """INSERT INTO users (user_id, login, login_key, nick)
    SELECT CAST(70000 + n AS text), login, login, CASE WHEN n % 500 = 0 THEN 'Rare' ELSE 'Many' END || n
    FROM generate_series(1, CAST(:count AS int)) n, CAST(md5(CAST(n AS text)) || '@example.com' AS text) login"""
)
_PROJECT = Statement("INSERT INTO projects (id, title) VALUES ('large', 'Large')")
_GROUPS = Statement(
    """INSERT INTO user_groups (id, project_id, title)
    SELECT md5(CAST(n AS text)), 'large', CASE WHEN n % 300 = 0 THEN 'Selten Ä' ELSE 'Viele ' END || n
    FROM generate_series(1, CAST(:count AS int)) n"""
)


@pytest.mark.parametrize("search", ["many", "MANY1", "rare", "ra", "none"])
async def test_users_are_found_by_nickname_page_by_page(database: Database, search: str) -> None:
    count = MAX_SORTED + 500
    await database.rows(_USERS, count=count)
    directory, found, after = UserDirectory(database), [], ""
    pages = 0
    while pages < 4:  # of many
        page = await directory.page(search, after, 50)
        found += page
        pages += 1
        if len(page) < 50:
            break
        after = page[-1].login_key
    rows = await database.rows(Statement("SELECT user_id, login_key, nick FROM users"))
    is_searched = len(search) >= 3
    expected = [row for row in rows if is_searched and row["nick"].lower().startswith(search.lower())]
    expected += [row for row in rows if row["login_key"].startswith(search.lower()) and row not in expected]
    expected.sort(key=lambda row: row["login_key"])
    assert [user.user_id for user in found] == [row["user_id"] for row in expected][: pages * 50]


@pytest.mark.parametrize(
    ("search", "matches"), [("viele", 2093), ("selten ä", 7), ("VIELE 7", None), ("none", 0), ("", 2100)]
)
async def test_groups_are_found_by_title_page_by_page(database: Database, search: str, matches: int | None) -> None:
    await database.rows(_PROJECT)
    await database.rows(_GROUPS, count=MAX_SORTED_GROUPS + 100)
    rows = await database.rows(Statement("SELECT id, title FROM user_groups ORDER BY id"))
    expected = [row["id"] for row in rows if row["title"].lower().startswith(search.lower())]
    assert matches in (None, len(expected))
    first = [row["id"] for row in await find_group_page(database, search, None, "", None, 50)]
    assert first == expected[:50]
    if len(first) == 50:
        second = [row["id"] for row in await find_group_page(database, search, None, first[-1], None, 50)]
        assert second == expected[50:100]
    of_project = [row["id"] for row in await find_group_page(database, search, "large", "", None, 50)]
    assert of_project == first
