"""Row locks of the permission tables, and their order.

Every transaction locks in this order to avoid deadlocks: applications by id (the central one is the first), then
projects by id.
"""

from collections.abc import Collection, Iterable

from sso.core.errors import Forbidden, NotFound
from sso.db.statement import Statement
from sso.db.transaction import Row, Runner
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.errors import PermissionConflict

ANY_PROJECT = object()  # the application may be in any project, or in none

_LOCK_APPLICATION = Statement("SELECT * FROM applications WHERE application_id = :application_id FOR UPDATE")
_LOCK_REVISION = Statement(
    """SELECT application_id, project_id, revision FROM applications WHERE application_id = :application_id
    FOR UPDATE"""
)
_SHARE_APPLICATIONS = Statement(
    """SELECT 1 FROM applications WHERE application_id = ANY(CAST(:ids AS int[]))
    ORDER BY application_id FOR SHARE"""
)
_LOCK_APPLICATIONS = Statement(
    """SELECT application_id, assertions FROM applications WHERE application_id = ANY(CAST(:ids AS int[]))
    ORDER BY application_id FOR UPDATE"""
)
_OF_PROJECTS = Statement("SELECT application_id FROM applications WHERE project_id = ANY(CAST(:ids AS text[]))")
_LOCK_PROJECT = Statement("SELECT * FROM projects WHERE id = :id FOR UPDATE")
_LOCK_PROJECTS = Statement("SELECT * FROM projects WHERE id = ANY(CAST(:ids AS text[])) ORDER BY id FOR UPDATE")
_SHARE_CONDITIONS = Statement("SELECT pg_advisory_xact_lock_shared(hashtextextended('permission conditions', 0))")
_LOCK_CONDITIONS = Statement("SELECT pg_advisory_xact_lock(hashtextextended('permission conditions', 0))")
# Dry runs share locks with each other, so many at once could keep writers of the central application waiting for ever.
_ONE_DRY_RUN = Statement("SELECT pg_advisory_xact_lock(hashtextextended('sso dry run', 0))")
# Documents are applied one at a time. Waiting for the previous one may take long; afterwards the usual lock timeout
# applies again.
_SET_TIMEOUTS = Statement("SELECT set_config('lock_timeout', :lock, true), set_config('statement_timeout', :run, true)")
_LOCK_TIMEOUT = Statement("SELECT current_setting('lock_timeout')")
_LOCK_APPLY = Statement("SELECT pg_advisory_xact_lock(hashtextextended('sso apply', 0))")


async def lock_application(tx: Runner, application_id: int, project_id: object = ANY_PROJECT) -> Row:
    """Locks an application that exists, before a change of it, its schema, its roles or its users' records.

    A caller whose rights come from the application's project passes ``project_id``. If the application has moved to
    another project since the rights were checked, this raises PermissionConflict.
    """
    return _in_project(await lock_application_if_exists(tx, application_id), project_id)


async def lock_revision(tx: Runner, application_id: int, project_id: object = ANY_PROJECT) -> Row:
    """Like `lock_application`, but returns only the ids and the revision: the schema may be large."""
    return _in_project(await tx.row(_LOCK_REVISION, application_id=application_id), project_id)


def _in_project(application: Row | None, project_id: object) -> Row:
    assert application is not None  # applications are never deleted
    if project_id is not ANY_PROJECT and application["project_id"] != project_id:
        raise PermissionConflict("the application was moved to another project meanwhile: try again")
    return application


async def lock_application_if_exists(tx: Runner, application_id: int) -> Row | None:
    return await tx.row(_LOCK_APPLICATION, application_id=application_id)


async def share_lock_applications(tx: Runner, application_ids: Iterable[int]) -> None:
    """Keeps schemas and roles of these applications unchanged until the transaction ends."""
    await tx.rows(_SHARE_APPLICATIONS, ids=sorted(application_ids))


async def lock_applications(tx: Runner, application_ids: Collection[int]) -> dict[int, list[str]]:
    """Returns the assertions of the applications."""
    rows = await tx.rows(_LOCK_APPLICATIONS, ids=sorted(application_ids)) if application_ids else []
    return {row["application_id"]: row["assertions"] for row in rows}


async def applications_of_projects(runner: Runner, project_ids: Collection[str]) -> frozenset[int]:
    return frozenset(row["application_id"] for row in await runner.rows(_OF_PROJECTS, ids=list(project_ids)))


async def lock_project(tx: Runner, project_id: str) -> Row:
    row = await tx.row(_LOCK_PROJECT, id=project_id)
    if row is None:
        raise NotFound("project not found")
    return row


async def lock_active_project(tx: Runner, project_id: str, applications: Iterable[int] = ()) -> None:
    """Locks the applications whose roles a write names, then the project. Raises Forbidden if it is removed."""
    await share_lock_applications(tx, {CENTRAL_APPLICATION_ID, *applications})
    if (await lock_project(tx, project_id))["removed"]:
        raise Forbidden("removed")


async def lock_projects(tx: Runner, project_ids: Iterable[str | None]) -> dict[str, Row]:
    """Locks the projects that exist and returns their rows by id."""
    ids = sorted({project_id for project_id in project_ids if project_id is not None})
    return {row["id"]: row for row in await tx.rows(_LOCK_PROJECTS, ids=ids)} if ids else {}


async def share_lock_conditions(tx: Runner) -> None:
    """Keeps writes of users' attributes waiting, because conditions are changed."""
    await tx.value(_SHARE_CONDITIONS)


async def lock_conditions(tx: Runner) -> None:
    """Keeps all conditions unchanged until the transaction ends, because attributes of users were changed."""
    await tx.value(_LOCK_CONDITIONS)


async def lock_dry_runs(tx: Runner) -> None:
    """Keeps other dry runs of more than a few records waiting until the transaction ends."""
    await tx.value(_ONE_DRY_RUN)


async def lock_documents(tx: Runner) -> None:
    """Waits up to a minute for other documents, which wait for this one until the transaction ends."""
    usual = await tx.value(_LOCK_TIMEOUT)
    await tx.value(_SET_TIMEOUTS, lock="60s", run="60s")
    await tx.value(_LOCK_APPLY)
    await tx.value(_SET_TIMEOUTS, lock=usual, run="60s")
