"""Who administers the service, and which projects a change may take an administrator from."""

from collections.abc import Collection
from enum import IntEnum

from sso.core.test_players import IS_TEST_PLAYER_SQL
from sso.db.statement import Statement
from sso.db.transaction import Runner
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, ROOT_ROLE


class Administration(IntEnum):
    """For how long the service or a project has an administrator."""

    NONE = 0
    TEMPORARY = 1  # the roles of all administrators expire
    PERMANENT = 2


# An administrator of the service is an enabled user to whom the role root is assigned. Test players never are.
_ROOT = f"""SELECT coalesce(max(CASE WHEN a.ttl > 0 OR a.expired = 0 THEN 2 ELSE 1 END), 0)
    FROM role_assignments a JOIN users u USING (user_id) WHERE a.application_id = :application_id AND a.name = :name
        AND (a.ttl > 0 OR a.expired = 0 OR a.expired > extract(epoch FROM now()))
        AND NOT {IS_TEST_PLAYER_SQL}"""
_ROOT_OF_ENABLED = Statement(f"{_ROOT} AND NOT u.disabled AND u.bans IS NULL")
_ROOT_OF_USERS = Statement(f"{_ROOT} AND u.user_id = ANY(CAST(:user_ids AS text[]))")
_PROJECTS_WITH_ROLES = Statement(
    """SELECT DISTINCT m.project_id FROM project_members m JOIN projects p ON p.id = m.project_id AND NOT p.removed
    WHERE m.role = ANY(CAST(:names AS text[])) AND m.level = 'project'"""
)
_PROJECTS_OF_USERS = Statement(
    """SELECT DISTINCT m.project_id FROM project_members m JOIN projects p ON p.id = m.project_id AND NOT p.removed
    WHERE m.user_id = ANY(CAST(:user_ids AS text[])) AND m.level = 'project'"""
)


async def read_root_administration(runner: Runner) -> Administration:
    """Returns for how long the service has an administrator."""
    return Administration(await runner.value(_ROOT_OF_ENABLED, application_id=CENTRAL_APPLICATION_ID, name=ROOT_ROLE))


async def read_root_assignments(runner: Runner, user_ids: Collection[str]) -> Administration:
    """Returns for how long one of these users has the role root, whether they are disabled or not."""
    return Administration(
        await runner.value(
            _ROOT_OF_USERS, application_id=CENTRAL_APPLICATION_ID, name=ROOT_ROLE, user_ids=list(user_ids)
        )
    )


async def projects_with_roles(runner: Runner, names: Collection[str]) -> set[str]:
    """Returns the projects in which one of these roles is given over the whole project."""
    return {row["project_id"] for row in await runner.rows(_PROJECTS_WITH_ROLES, names=list(names))}


async def projects_of_users(runner: Runner, user_ids: Collection[str]) -> set[str]:
    """Returns the projects in which one of these users has a role over the whole project."""
    return {row["project_id"] for row in await runner.rows(_PROJECTS_OF_USERS, user_ids=list(user_ids))}
