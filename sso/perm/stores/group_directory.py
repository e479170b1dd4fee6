"""Finds groups for the management API: by a part of a title or id, page by page, quickly also among 100,000 groups."""

from collections.abc import Collection
from typing import NamedTuple

from sso.db.database import Database
from sso.db.sorted_pages import Page, PageQuery, SortColumn, SortedPages, cut_page
from sso.db.statement import Statement
from sso.db.transaction import Row
from sso.perm.stores.groups import GROUP_SQL

MIN_PART = 3  # a shorter search is for the beginning of a title
MAX_SORTED_GROUPS = 2000  # groups with a title that are sorted for a page

_SELECT = f"""{GROUP_SQL} JOIN projects p ON p.id = g.project_id AND NOT p.removed
    WHERE g.id > :after AND (:everything OR g.id = ANY(CAST(:ids AS text[])))"""
_PAGE = Statement(f"{_SELECT} ORDER BY g.id LIMIT :limit")
_OF_PROJECT = SortedPages(
    f"""SELECT *, {{value}} FROM ({GROUP_SQL} JOIN projects p ON p.id = g.project_id AND NOT p.removed
        WHERE g.project_id = :project_id AND (:everything OR g.id = ANY(CAST(:ids AS text[])))
            AND (strpos(lower(g.title), lower(:search)) > 0 OR strpos(g.id, lower(:search)) > 0)) AS groups
    WHERE {{after}} ORDER BY {{order}} LIMIT :limit""",
    SortColumn("id", is_unique=True),
    {"title": SortColumn("lower(title)")},
)


class _TitleSearch(NamedTuple):
    """The statements of a search in all projects.

    An index finds the groups of a rare title, which are then sorted. Of many groups, the first ones are soon found in
    the order of ids, with a condition for which there is no index.
    """

    is_frequent: Statement
    rare: Statement
    frequent: Statement

    @classmethod
    def of(cls, indexed: str, matches: str) -> "_TitleSearch":
        found = f"SELECT id FROM user_groups g WHERE {indexed} AND {matches}"
        return cls(
            Statement(f"SELECT count(*) > {MAX_SORTED_GROUPS} FROM ({found} LIMIT {MAX_SORTED_GROUPS + 1}) titled"),
            Statement(f"{_SELECT} AND g.id = ANY (ARRAY({found})) ORDER BY g.id LIMIT :limit"),
            Statement(f"{_SELECT} AND {matches} ORDER BY g.id LIMIT :limit"),
        )


_BY_BEGINNING = _TitleSearch.of(
    # The last character of Unicode sorts after all others.
    """lower(title) COLLATE "C" >= lower(:search) AND lower(title) COLLATE "C" < lower(:search) || chr(1114111)""",
    "left(lower(g.title), length(lower(:search))) = lower(:search)",
)
_BY_PART = _TitleSearch.of(
    """search_trigrams(lower(title), id)
        @> ARRAY(SELECT substr(lower(:search), n, 3) FROM generate_series(1, length(lower(:search)) - 2) n)""",
    "(strpos(lower(g.title), lower(:search)) > 0 OR strpos(g.id, lower(:search)) > 0)",
)


async def find_group_page(
    database: Database, query: PageQuery, project_id: str | None, ids: Collection[object] | None
) -> Page[Row]:
    """Returns groups of one project, or those of all projects in the order of ids.

    ``ids`` are those that the caller may see; None stands for all.
    """
    values = {"everything": ids is None, "ids": list(ids or ())}
    if project_id is not None:
        return await _OF_PROJECT.page(database, query, project_id=project_id, **values)
    values |= {"after": query.after, "limit": query.limit + 1}
    if query.search:
        values["search"] = query.search
        search = _BY_PART if len(query.search) >= MIN_PART else _BY_BEGINNING
        is_frequent = await database.value(search.is_frequent, search=query.search)
        rows = await database.rows(search.frequent if is_frequent else search.rare, **values)
    else:
        rows = await database.rows(_PAGE, **values)
    return cut_page(rows, query.limit, lambda row: str(row["id"]))
