"""Pages of the lists of the management API: records that a caller may see, in the order of their ids.

Groups are found by the beginning of a title, quickly also among 100,000 groups.
"""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from sso.core.ids import MAX_APPLICATION_ID
from sso.db.database import Database
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner
from sso.perm.stores.groups import GROUP_SQL

MAX_SORTED_GROUPS = 2000  # groups with a title that are sorted for a page

_SELECT = f"""{GROUP_SQL} JOIN projects p ON p.id = g.project_id AND NOT p.removed
    WHERE g.id > :after AND (:everything OR g.id = ANY(CAST(:ids AS text[])))"""
_GROUPS = Statement(f"{_SELECT} ORDER BY g.id LIMIT :limit")
_GROUPS_OF_PROJECT = Statement(
    f"""{_SELECT} AND starts_with(lower(g.title), lower(:search)) AND g.project_id = :project_id
    ORDER BY g.id LIMIT :limit"""
)
# An index finds the groups of a rare title, which are then sorted. Of many groups, the first ones are soon found in the
# order of ids; `left` keeps PostgreSQL from using the index on titles.
_WITH_TITLE = """lower(title) COLLATE "C" >= lower(:search)
    AND lower(title) COLLATE "C" < lower(:search) || chr(1114111)"""  # the last character of Unicode
_GROUPS_OF_RARE_TITLE = Statement(
    f"""{_SELECT} AND g.id = ANY (ARRAY(SELECT id FROM user_groups WHERE {_WITH_TITLE}))
    ORDER BY g.id LIMIT :limit"""
)
_GROUPS_OF_FREQUENT_TITLE = Statement(
    f"""{_SELECT} AND left(lower(g.title), length(lower(:search))) = lower(:search) ORDER BY g.id LIMIT :limit"""
)
_IS_FREQUENT = Statement(
    f"""SELECT count(*) > {MAX_SORTED_GROUPS}
    FROM (SELECT FROM user_groups WHERE {_WITH_TITLE} LIMIT {MAX_SORTED_GROUPS + 1}) titled"""
)
_PROJECTS = Statement(
    """SELECT * FROM projects WHERE id > :after AND removed = :removed
        AND (:everything OR id = ANY(CAST(:ids AS text[])))
        AND (starts_with(id, lower(:search)) OR starts_with(lower(title), lower(:search)))
        AND (CAST(:id AS text) IS NULL OR id = :id)
    ORDER BY id LIMIT :limit"""
)
_COUNTS = Statement(
    """SELECT p.id, (SELECT count(*) FROM applications a WHERE a.project_id = p.id AND NOT a.removed) AS applications,
        (SELECT count(*) FROM user_groups g WHERE g.project_id = p.id) AS groups,
        (SELECT count(DISTINCT user_id) FROM project_members m WHERE m.project_id = p.id) AS members
    FROM unnest(CAST(:ids AS text[])) AS p (id)"""
)
_APPLICATIONS = Statement(
    """SELECT application_id, name, description, project_id, settings, service_meta, removed FROM applications
    WHERE application_id > :after AND removed = :removed
        AND ((:everything AND application_id <> 1) OR application_id = ANY(CAST(:ids AS int[])))
        AND (CAST(:project_id AS text) IS NULL OR project_id = :project_id)
        AND (starts_with(lower(name), lower(:search)) OR CAST(application_id AS text) = :search)
    ORDER BY application_id LIMIT :limit"""
)
_ACTIVE_APPLICATIONS = Statement(
    """SELECT a.* FROM applications a LEFT JOIN projects p ON p.id = a.project_id
    WHERE a.application_id > :after AND NOT a.removed AND p.removed IS NOT TRUE
        AND ((:everything AND a.application_id <> 1) OR a.application_id = ANY(CAST(:ids AS int[])))
        AND (starts_with(lower(a.name), lower(:search)) OR CAST(a.application_id AS text) = :search)
    ORDER BY a.application_id LIMIT :limit"""
)
_ROLES = Statement(
    """SELECT r.application_id, to_jsonb(r) - 'application_id' AS role
    FROM roles r JOIN applications a USING (application_id) LEFT JOIN projects p ON p.id = a.project_id
    WHERE (r.application_id, r.name) > (:after_id, :after_name) AND r.application_id <= :last_id
        AND NOT a.removed AND p.removed IS NOT TRUE
        AND ((:everything AND r.application_id <> 1) OR r.application_id = ANY(CAST(:ids AS int[])))
        AND starts_with(lower(r.name), lower(:search))
    ORDER BY r.application_id, r.name LIMIT :limit"""
)
_ACCESS_KEYS = Statement(
    """SELECT k.id, k.application_id, k.comment, k.created, k.modified, k.last_used
    FROM access_keys k JOIN applications a USING (application_id) LEFT JOIN projects p ON p.id = a.project_id
    WHERE (k.application_id, k.id) > (:after_id, :after_key) AND NOT a.removed AND p.removed IS NOT TRUE
        AND ((:everything AND k.application_id <> 1) OR k.application_id = ANY(CAST(:ids AS int[])))
        AND (CAST(:application_id AS int) IS NULL OR k.application_id = :application_id)
        AND (starts_with(lower(k.comment), lower(:search)) OR starts_with(k.id, :search))
    ORDER BY k.application_id, k.id LIMIT :limit"""
)


class PageQuery(NamedTuple):
    """Which records are listed: those that begin with ``search`` and that the caller may see."""

    search: str
    everything: bool  # the caller may see all but the central application
    ids: Collection[object]  # that the caller may see in any case
    limit: int

    @property
    def values(self) -> dict[str, Any]:
        return self._asdict() | {"ids": list(self.ids)}


async def find_projects(
    runner: Runner, query: PageQuery, after: str, *, removed: bool = False, project_id: str | None = None
) -> list[Row]:
    """Returns the projects, or the removed ones, after the id ``after``; with ``project_id``, only that one."""
    return await runner.rows(_PROJECTS, after=after, removed=removed, id=project_id, **query.values)


async def count_records(runner: Runner, project_ids: Iterable[str]) -> dict[str, dict[str, int]]:
    """Returns the numbers of applications, groups and members of each project."""
    rows = await runner.rows(_COUNTS, ids=list(project_ids))
    return {row["id"]: {name: row[name] for name in ("applications", "groups", "members")} for row in rows}


async def find_applications(
    runner: Runner, query: PageQuery, after: int, *, removed: bool = False, project_id: str | None = None
) -> list[Row]:
    """Returns the applications, or the removed ones, of all projects or of one, after the id ``after``."""
    return await runner.rows(_APPLICATIONS, after=after, removed=removed, project_id=project_id, **query.values)


async def find_active_applications(runner: Runner, query: PageQuery, after: int) -> list[Row]:
    """Returns the applications after the id ``after`` that are not removed, nor in a removed project."""
    return await runner.rows(_ACTIVE_APPLICATIONS, after=after, **query.values)


async def find_roles(
    runner: Runner, query: PageQuery, after: tuple[int, str], application_id: int | None = None
) -> list[Row]:
    """Returns the roles of all applications, or of one, after the application and name ``after``."""
    first, last = (application_id or 0), (application_id or MAX_APPLICATION_ID)
    return await runner.rows(_ROLES, after_id=after[0] or first, after_name=after[1], last_id=last, **query.values)


async def find_access_keys(
    runner: Runner, query: PageQuery, after: tuple[int, str], application_id: int | None = None
) -> list[Row]:
    """Returns the access keys of all applications, or of one, after the application and key ``after``."""
    values = {"after_id": after[0], "after_key": after[1], "application_id": application_id}
    return await runner.rows(_ACCESS_KEYS, **values, **query.values)


async def find_group_page(database: Database, query: PageQuery, after: str, project_id: str | None = None) -> list[Row]:
    """Returns the groups after the id ``after``, of all projects or of one of them."""
    values = {"after": after, **query.values}
    if project_id is not None:
        return await database.rows(_GROUPS_OF_PROJECT, project_id=project_id, **values)
    if not query.search:
        del values["search"]
        return await database.rows(_GROUPS, **values)
    is_frequent = await database.value(_IS_FREQUENT, search=query.search)
    return await database.rows(_GROUPS_OF_FREQUENT_TITLE if is_frequent else _GROUPS_OF_RARE_TITLE, **values)
