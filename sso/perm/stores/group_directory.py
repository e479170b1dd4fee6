"""Finds groups for the management API: by the beginning of a title, page by page, quickly also among 100,000 groups."""

from collections.abc import Collection

from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row
from sso.perm.stores.groups import GROUP_SQL

MAX_SORTED_GROUPS = 2000  # groups with a title that are sorted for a page

_SELECT = f"""{GROUP_SQL} JOIN projects p ON p.id = g.project_id AND NOT p.removed
    WHERE g.id > :after AND (:everything OR g.id = ANY(CAST(:ids AS text[])))"""
_PAGE = Statement(f"{_SELECT} ORDER BY g.id LIMIT :limit")
_PAGE_OF_PROJECT = Statement(
    f"""{_SELECT} AND starts_with(lower(g.title), lower(:search)) AND g.project_id = :project_id
    ORDER BY g.id LIMIT :limit"""
)
# An index finds the groups of a rare title, which are then sorted. Of many groups, the first ones are soon found in the
# order of ids; `left` keeps PostgreSQL from using the index on titles.
_WITH_TITLE = """lower(title) COLLATE "C" >= lower(:search)
    AND lower(title) COLLATE "C" < lower(:search) || chr(1114111)"""  # the last character of Unicode
_PAGE_OF_RARE_TITLE = Statement(
    f"""{_SELECT} AND g.id = ANY (ARRAY(SELECT id FROM user_groups WHERE {_WITH_TITLE}))
    ORDER BY g.id LIMIT :limit"""
)
_PAGE_OF_FREQUENT_TITLE = Statement(
    f"""{_SELECT} AND left(lower(g.title), length(lower(:search))) = lower(:search) ORDER BY g.id LIMIT :limit"""
)
_IS_FREQUENT = Statement(
    f"""SELECT count(*) > {MAX_SORTED_GROUPS}
    FROM (SELECT FROM user_groups WHERE {_WITH_TITLE} LIMIT {MAX_SORTED_GROUPS + 1}) titled"""
)


async def find_group_page(
    database: Database,
    search: str,
    project_id: str | None,
    after: str,
    ids: Collection[object] | None,
    limit: int,
) -> list[Row]:
    """Returns the groups after the id ``after`` in the order of ids, of all projects or of one of them.

    ``ids`` are those that the caller may see; None stands for all.
    """
    values = {"after": after, "everything": ids is None, "ids": list(ids or ()), "limit": limit}
    if project_id is not None:
        return await database.rows(_PAGE_OF_PROJECT, project_id=project_id, search=search, **values)
    if not search:
        return await database.rows(_PAGE, **values)
    is_frequent = await database.value(_IS_FREQUENT, search=search)
    statement = _PAGE_OF_FREQUENT_TITLE if is_frequent else _PAGE_OF_RARE_TITLE
    return await database.rows(statement, search=search, **values)
