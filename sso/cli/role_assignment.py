"""sso role assign, sso role unassign"""

from typing import TYPE_CHECKING

import click

from sso.cli.arguments import APP_OR_CENTRAL, ROLE, TTL, UNTIL, USER
from sso.cli.confirmation import confirm, yes_option
from sso.cli.context import CommandFailure
from sso.cli.echo import echo
from sso.cli.option_errors import option_errors
from sso.cli.records import with_records
from sso.cli.records.types import AssignmentChange
from sso.perm.engine.records import Assignment
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, ROOT_ROLE

if TYPE_CHECKING:
    from sso.cli.records.service import ServiceRecords


@click.command()
@USER
@ROLE
@APP_OR_CENTRAL
@TTL
@UNTIL
@yes_option
@click.pass_context
def assign(ctx: click.Context, user: str, role: str, app_id: int, ttl: int, expired: int, yes: bool) -> None:
    """Assign a role to USER (user id or login). If it is assigned already, --ttl and --until replace the old values.

    The role root of the central application has every permission, so the command asks before it assigns it.

    \b
    Example:
      sso role assign ann@example.com moderator --app 10 --until 2030-12-31
      sso role assign ann@example.com root --yes
    """
    if role == ROOT_ROLE and app_id == CENTRAL_APPLICATION_ID:
        question = f"The role root has every permission, at every application. Give it to {user}?"
        confirm(question, yes, "nothing is assigned")
    new = Assignment(role, expired, ttl)

    def change(old: list[Assignment]) -> list[Assignment]:
        if any(item.name == role for item in old):
            return [new if item.name == role else item for item in old]
        return [*old, new]

    login, changed = _change(ctx, user, role, app_id, change)
    echo(f"{login} has the role {role} at application {app_id}{'' if changed else ', as before'}")


@click.command()
@USER
@ROLE
@APP_OR_CENTRAL
@click.pass_context
def unassign(ctx: click.Context, user: str, role: str, app_id: int) -> None:
    """Remove an assigned role from USER. Roles from defaults, conditions, groups or projects are not affected.

    \b
    Example:
      sso role unassign ann@example.com moderator --app 10
    """
    login, changed = _change(ctx, user, role, app_id, lambda old: [item for item in old if item.name != role])
    if not changed:
        raise CommandFailure(f"{login} has no role {role} assigned at application {app_id}")
    echo(f"{login} no longer has the role {role} at application {app_id}")


def _change(ctx: click.Context, user: str, role: str, app_id: int, change: AssignmentChange) -> tuple[str, bool]:
    """Changes the assigned roles. Returns the login of the user, and whether anything has changed."""

    async def work(records: "ServiceRecords") -> tuple[str, bool]:
        from sso.perm.input.names import read_segment

        read_segment(role, ("roles",))
        account = await records.users.find(user)
        return account["login"], await records.roles.assign(account["user_id"], app_id, role, change)

    with option_errors({"roles": "ROLE"}, f"application {app_id}, or its project,"):
        return with_records(ctx, work)
