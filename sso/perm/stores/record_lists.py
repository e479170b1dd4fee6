"""Lists of records: pages for administrators, and all of them for a document.

A page has records after those of the previous page, found by a part of a name.
"""

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from sso.core.ids import MAX_APPLICATION_ID
from sso.db.sorted_pages import Page, PageQuery, SortColumn, SortedPages
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner
from sso.perm.engine.records import RoleRecord

_SEEN = "((:everything AND {column} <> 1) OR {column} = ANY(CAST(:ids AS int[])))"
_OF_ACTIVE_APPLICATION = f"""JOIN applications a USING (application_id) LEFT JOIN projects p ON p.id = a.project_id
    WHERE NOT a.removed AND p.removed IS NOT TRUE AND {_SEEN.format(column="application_id")}"""
_APPLICATIONS = SortedPages(
    f"""SELECT application_id, name, description, project_id, settings, service_meta, removed, {{value}}
    FROM applications
    WHERE {{after}} AND removed = :removed AND {_SEEN.format(column="application_id")}
        AND (CAST(:project_id AS text) IS NULL OR project_id = :project_id)
        AND (strpos(lower(name), lower(:search)) > 0 OR CAST(application_id AS text) = :search)
    ORDER BY {{order}} LIMIT :limit""",
    SortColumn("application_id", "number", is_unique=True),
    {"name": SortColumn("lower(name)"), "project_id": SortColumn("coalesce(project_id, '')")},
)
_SCHEMAS = Statement(
    f"""SELECT a.* FROM applications a LEFT JOIN projects p ON p.id = a.project_id
    WHERE a.application_id > :after AND NOT a.removed AND p.removed IS NOT TRUE
        AND {_SEEN.format(column="a.application_id")}
        AND (strpos(lower(a.name), lower(:search)) > 0 OR CAST(a.application_id AS text) = :search)
    ORDER BY a.application_id LIMIT :limit"""
)
_ROLES = Statement(
    f"""SELECT r.application_id, to_jsonb(r) - 'application_id' AS role FROM roles r {_OF_ACTIVE_APPLICATION}
        AND (r.application_id, r.name) > (:after_id, :after_name) AND r.application_id <= :last_id
        AND strpos(lower(r.name), lower(:search)) > 0
    ORDER BY r.application_id, r.name LIMIT :limit"""
)
_ACCESS_KEYS = Statement(
    f"""SELECT k.id, k.application_id, k.comment, k.created, k.modified, k.last_used
    FROM access_keys k {_OF_ACTIVE_APPLICATION} AND (k.application_id, k.id) > (:after_id, :after_key)
        AND (CAST(:application_id AS int) IS NULL OR k.application_id = :application_id)
        AND (strpos(lower(k.comment), lower(:search)) > 0 OR starts_with(k.id, :search))
    ORDER BY k.application_id, k.id LIMIT :limit"""
)
_PROJECTS = SortedPages(
    """SELECT *, {value} FROM projects WHERE {after} AND removed = :removed
        AND (:everything OR id = ANY(CAST(:ids AS text[])))
        AND (strpos(id, lower(:search)) > 0 OR strpos(lower(title), lower(:search)) > 0
            OR strpos(lower(display_name), lower(:search)) > 0)
        AND (CAST(:id AS text) IS NULL OR id = :id)
    ORDER BY {order} LIMIT :limit""",
    SortColumn("id", is_unique=True),
    {
        "title": SortColumn("lower(coalesce(nullif(display_name, ''), title))"),
        "created": SortColumn("created", "time"),
    },
)
_ACTIVE_APPLICATIONS = """FROM applications a LEFT JOIN projects p ON p.id = a.project_id
    WHERE NOT a.removed AND p.removed IS NOT TRUE"""
_ALL_APPLICATIONS = Statement(f"SELECT a.* {_ACTIVE_APPLICATIONS} ORDER BY a.application_id")
_ALL_PROJECTS = Statement("SELECT * FROM projects WHERE NOT removed ORDER BY created, id")
_ALL_USER_RECORDS = Statement(
    f"""SELECT user_id, application_id FROM (
        SELECT user_id, application_id FROM user_records UNION SELECT user_id, application_id FROM role_assignments) r
    JOIN users u USING (user_id) JOIN (SELECT a.application_id {_ACTIVE_APPLICATIONS}) a USING (application_id)
    WHERE u.login <> '' ORDER BY application_id, length(user_id), user_id"""
)
_PROJECTS_OF_RECORDS = Statement(
    """SELECT project_id FROM user_groups WHERE id = ANY(CAST(:groups AS text[]))
    UNION SELECT project_id FROM applications
        WHERE application_id = ANY(CAST(:applications AS int[])) AND project_id IS NOT NULL"""
)
_PROJECT_COUNTS = Statement(
    """SELECT p.id, (SELECT count(*) FROM applications a WHERE a.project_id = p.id AND NOT a.removed) AS applications,
        (SELECT count(*) FROM user_groups g WHERE g.project_id = p.id) AS groups,
        (SELECT count(DISTINCT user_id) FROM project_members m WHERE m.project_id = p.id) AS members
    FROM unnest(CAST(:ids AS text[])) AS p (id)"""
)
_EXISTS = {
    "application": Statement("SELECT EXISTS (SELECT 1 FROM applications WHERE application_id = :id)"),
    "project": Statement("SELECT EXISTS (SELECT 1 FROM projects WHERE id = :id)"),
    "group": Statement("SELECT EXISTS (SELECT 1 FROM user_groups WHERE id = :id)"),
}


class VisibleIds(Protocol):
    """The applications or projects that a caller may see."""

    @property
    def everything(self) -> bool:
        """Whether the caller may see all of them, except the central application."""

    @property
    def ids(self) -> Collection[Any]: ...


def _seen(visible: VisibleIds) -> dict[str, Any]:
    return {"everything": visible.everything, "ids": list(visible.ids)}


async def application_page(
    runner: Runner,
    visible: VisibleIds,
    query: PageQuery,
    *,
    project_id: str | None,
    removed: bool,
) -> Page[Row]:
    return await _APPLICATIONS.page(runner, query, project_id=project_id, removed=removed, **_seen(visible))


async def schema_page(runner: Runner, visible: VisibleIds, search: str, after: int, limit: int) -> Sequence[Row]:
    return await runner.rows(_SCHEMAS, search=search, after=after, limit=limit, **_seen(visible))


async def role_page(
    runner: Runner,
    visible: VisibleIds,
    search: str,
    after: tuple[int, str],
    limit: int,
    application_id: int | None,
) -> list[tuple[int, RoleRecord]]:
    """Returns roles with their applications: those of one application, or of all."""
    rows = await runner.rows(
        _ROLES,
        after_id=after[0] or application_id or 0,
        after_name=after[1],
        last_id=application_id or MAX_APPLICATION_ID,
        search=search,
        limit=limit,
        **_seen(visible),
    )
    return [(row["application_id"], RoleRecord(**row["role"])) for row in rows]


async def access_key_page(
    runner: Runner,
    visible: VisibleIds,
    search: str,
    after: tuple[int, str],
    limit: int,
    application_id: int | None,
) -> Sequence[Row]:
    values = {"after_id": after[0], "after_key": after[1], "application_id": application_id}
    return await runner.rows(_ACCESS_KEYS, search=search, limit=limit, **values, **_seen(visible))


async def project_page(
    runner: Runner,
    visible: VisibleIds,
    query: PageQuery,
    *,
    project_id: str | None,
    removed: bool,
) -> Page[Row]:
    """Returns all projects, or the one with the id ``project_id``."""
    return await _PROJECTS.page(runner, query, id=project_id, removed=removed, **_seen(visible))


async def count_project_records(runner: Runner, project_ids: Sequence[str]) -> dict[str, dict[str, int]]:
    """Returns the numbers of applications, groups and members by project."""
    rows = await runner.rows(_PROJECT_COUNTS, ids=list(project_ids))
    return {row["id"]: {name: row[name] for name in ("applications", "groups", "members")} for row in rows}


async def list_applications(runner: Runner) -> Sequence[Row]:
    """Returns all applications that are not removed, and whose project is not removed."""
    return await runner.rows(_ALL_APPLICATIONS)


async def list_projects(runner: Runner) -> Sequence[Row]:
    """Returns all projects that are not removed, the oldest first."""
    return await runner.rows(_ALL_PROJECTS)


async def list_user_records(runner: Runner) -> list[tuple[str, int]]:
    """Returns the users and applications where a user who is no guest has roles or data of their own."""
    return [(row["user_id"], row["application_id"]) for row in await runner.rows(_ALL_USER_RECORDS)]


async def projects_of_records(runner: Runner, group_ids: Sequence[str], application_ids: Sequence[int]) -> list[str]:
    """Returns the projects that these groups and applications are in."""
    rows = await runner.rows(_PROJECTS_OF_RECORDS, groups=list(group_ids), applications=list(application_ids))
    return [row["project_id"] for row in rows]


async def record_exists(runner: Runner, kind: str, record_id: int | str) -> bool:
    """``kind`` is application, project or group."""
    return bool(await runner.value(_EXISTS[kind], id=record_id))
