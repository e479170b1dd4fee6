"""Finds the user, project or application that an argument names in the database of this machine."""

from typing import TYPE_CHECKING

from sso.cli.lookups import unknown_application, unknown_project, unknown_user

if TYPE_CHECKING:
    from sso.accounts.model import User
    from sso.cli.services import CommandServices
    from sso.db.transaction import Row, Runner


async def require_user(services: "CommandServices", name: str) -> "User":
    """Finds a user by id or login."""
    user = await services.users.find(name)
    if user is None:
        raise unknown_user(name)
    return user


async def require_project(runner: "Runner", name: str) -> "Row":
    """Finds a project by id, alias or original title: a title with underscores is the id."""
    from sso.perm.stores.projects import read_project, resolve_project_id

    row = await read_project(runner, await resolve_project_id(runner, name.replace(" ", "_")))
    if row is None:
        raise unknown_project(name)
    return row


async def require_application(runner: "Runner", application_id: int) -> "Row":
    from sso.perm.stores.applications import read_application_row

    row = await read_application_row(runner, application_id)
    if row is None:
        raise unknown_application(application_id)
    return row
