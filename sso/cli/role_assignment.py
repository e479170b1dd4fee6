"""sso role assign, sso role unassign"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from sso.cli.arguments import APP_OR_CENTRAL, EXPIRED, ROLE, TTL, USER
from sso.cli.context import CommandFailure, with_services
from sso.cli.lookups import require_application, require_role, require_user
from sso.cli.option_errors import option_errors
from sso.cli.permission_write import write_permissions
from sso.cli.services import CommandServices
from sso.perm.changes.scope import Scope
from sso.perm.engine.records import Assignment

if TYPE_CHECKING:
    from sso.accounts.model import User
    from sso.db.transaction import Transaction
    from sso.perm.stores.audit import AuditActor

Change = Callable[[list[Assignment]], list[Assignment]]


@click.command()
@USER
@ROLE
@APP_OR_CENTRAL
@TTL
@EXPIRED
@click.pass_context
def assign(ctx: click.Context, user: str, role: str, app_id: int, ttl: int, expired: int) -> None:
    """Assign a role to USER (user id or login). If it is assigned already, --ttl and --expired replace the old values.

    The role root of the central application has every permission.

    \b
    Example:
      sso role assign ann@example.com moderator --app 10 --expired 2030-12-31
      sso role assign ann@example.com root
    """
    new = Assignment(role, expired, ttl)

    def change(old: list[Assignment]) -> list[Assignment]:
        if any(item.name == role for item in old):
            return [new if item.name == role else item for item in old]
        return [*old, new]

    account, changed = _change(ctx, user, role, app_id, change)
    click.echo(f"{account.login} has the role {role} at application {app_id}{'' if changed else ', as before'}")


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
    account, changed = _change(ctx, user, role, app_id, lambda old: [item for item in old if item.name != role])
    if not changed:
        raise CommandFailure(f"{account.login} has no role {role} assigned at application {app_id}")
    click.echo(f"{account.login} no longer has the role {role} at application {app_id}")


def _change(ctx: click.Context, user: str, role: str, app_id: int, change: Change) -> "tuple[User, bool]":
    """Changes the assigned roles. Returns the user, and whether anything has changed."""

    async def work(services: CommandServices) -> "tuple[User, bool]":
        from sso.perm.input.names import read_segment

        read_segment(role, "roles")
        account = await require_user(services, user)
        await require_application(services.database, app_id)
        scope = Scope.record(account.user_id, app_id)
        save = write_permissions(services, scope, _save, services.actor, account.user_id, role, app_id, change)
        return account, await save

    with option_errors({"roles": "ROLE"}, f"application {app_id}, or its project,"):
        return with_services(ctx, work)


async def _save(tx: "Transaction", actor: "AuditActor", user_id: str, role: str, app_id: int, change: Change) -> bool:
    from sso.perm.stores.applications import refuse_removed_application
    from sso.perm.stores.locks import lock_application
    from sso.perm.stores.roles import read_roles
    from sso.perm.stores.user_data import read_assigned_roles, read_record, save_record

    row = await lock_application(tx, app_id)
    await refuse_removed_application(tx, row)
    known = await read_roles(tx, app_id)
    old = await read_record(tx, user_id, app_id)
    assigned = tuple(change(list(await read_assigned_roles(tx, user_id, app_id))))
    require_role(known, role, app_id)
    return await save_record(tx, actor, user_id, row, known, {}, assigned) != old
