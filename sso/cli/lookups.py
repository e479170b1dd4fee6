"""Finds the user, project, application, role or group that an argument names."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sso.cli.context import CommandFailure

if TYPE_CHECKING:
    from sso.accounts.model import User
    from sso.cli.services import CommandServices
    from sso.db.transaction import Row, Runner
    from sso.perm.engine.records import RoleRecord


async def require_user(services: "CommandServices", name: str) -> "User":
    """Finds a user by id or login."""
    user = await services.users.find(name)
    if user is None:
        raise CommandFailure(f"there is no user {name}")
    return user


async def require_project(runner: "Runner", name: str) -> "Row":
    """Finds a project by id, alias or original title: a title with underscores is the id."""
    from sso.perm.stores.projects import read_project, resolve_project_id

    row = await read_project(runner, await resolve_project_id(runner, name.replace(" ", "_")))
    if row is None:
        raise CommandFailure(f"there is no project {name}; `sso project list` shows them")
    return row


async def require_application(runner: "Runner", app_id: int) -> "Row":
    from sso.perm.stores.applications import read_application_row

    row = await read_application_row(runner, app_id)
    if row is None:
        raise CommandFailure(f"there is no application {app_id}; `sso app list` shows them")
    return row


def require_role(roles: "Mapping[str, RoleRecord]", name: str, app_id: int) -> "RoleRecord":
    """Finds a role among the roles of an application."""
    if name not in roles:
        known = ", ".join(sorted(roles)) or "none"
        raise CommandFailure(f"there is no role {name}; the roles of application {app_id}: {known}")
    return roles[name]


async def require_group(runner: "Runner", name: str, project: str | None) -> "Row":
    """Finds a group by id or title, in one project or in all. Titles are not unique."""
    from sso.perm.stores.groups import find_groups

    project_id = (await require_project(runner, project))["id"] if project else None
    groups = await find_groups(runner, name, project_id)
    if not groups:
        where = f" in the project {project_id}" if project_id else ""
        raise CommandFailure(f"there is no group {name}{where}; `sso group list` shows them")
    if len(groups) > 1:
        known = ", ".join(f"{row['id']} in {row['project_id']}" for row in groups[:5])
        raise CommandFailure(f"GROUP: several groups have the title {name}: expected one of the ids {known}")
    return groups[0]
