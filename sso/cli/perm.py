"""sso perm …"""

from collections.abc import Callable
from typing import Any

import click

from sso.accounts.model import User
from sso.cli.context import CommandFailure, command_line_actor, with_services
from sso.cli.output import print_json, print_lines
from sso.cli.perm_format import format_explanation
from sso.cli.services import CommandServices
from sso.cli.types import APPLICATION_ID, unix_time
from sso.db.transaction import Transaction
from sso.perm.engine.names import CENTRAL_APPLICATION_ID, LIST_TYPES
from sso.perm.engine.records import Assignment
from sso.perm.errors import InvalidInput
from sso.perm.input.names import read_segment
from sso.perm.stores.facts import LoadedFacts
from sso.perm.stores.locks import lock_application
from sso.perm.stores.roles import read_roles
from sso.perm.stores.user_data import read_assigned_roles, read_record, save_record

USER = click.argument("user")
APP = click.option(
    "--app",
    "app_id",
    type=APPLICATION_ID,
    default=CENTRAL_APPLICATION_ID,
    show_default=True,
    help="Application id; 1 is the central application.",
)
Change = Callable[[list[Assignment]], list[Assignment]]


@click.group()
def command() -> None:
    """Show and explain permissions of a user; grant and revoke roles. USER is a user id or a login.

    The central application, 1, holds the permissions for the whole service and for projects. To create the first
    administrator, run `sso perm grant ann@example.com root`.
    """


@command.command("list")
@USER
@APP
@click.option(
    "--type", "kind", type=click.Choice(LIST_TYPES), default="list_short", show_default=True, help="Output format."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def list_permissions(ctx: click.Context, user: str, app_id: int, kind: str, as_json: bool) -> None:
    """List the permissions of a user at an application: one rule or role per line, or the tree as JSON.

    Conditions on the client's address count as not met, because there is no request.
    """

    async def work(services: CommandServices) -> Any:
        loaded = await _load_facts(services, await _require_user(services, user), app_id)
        return loaded.render(kind, await services.database_time())

    shown = with_services(ctx, work)
    if kind == "tree" or as_json:
        print_json(shown)
    else:
        print_lines(shown)


@command.command()
@USER
@click.argument("rule")
@APP
@click.option("--json", "as_json", is_flag=True, help="Print the complete explanation as JSON.")
@click.pass_context
def explain(ctx: click.Context, user: str, rule: str, app_id: int, as_json: bool) -> None:
    """Explain why a user has a rule, or the most likely reasons why not.

    RULE is written as in `sso perm list`: can_create_projects, private_data.chat.mute,
    red_dawn/project.can_view_project.

    \b
    Example:
      sso perm explain ann@example.com can_create_projects
    """

    async def work(services: CommandServices) -> tuple[User, dict[str, Any]]:
        account = await _require_user(services, user)
        loaded = await _load_facts(services, account, app_id)
        return account, loaded.explain(rule, await services.database_time())

    account, explanation = with_services(ctx, work)
    if as_json:
        print_json(explanation)
    else:
        print_lines(format_explanation(account.login, explanation))


@command.command()
@USER
@click.argument("role")
@APP
@click.option("--ttl", type=click.IntRange(0), default=0, help="Seconds that the role stays valid after each read.")
@click.option("--expired", type=unix_time, help="When the assignment ends: Unix seconds, or a date such as 2030-12-31.")
@click.pass_context
def grant(ctx: click.Context, user: str, role: str, app_id: int, ttl: int, expired: int | None) -> None:
    """Assign ROLE to a user. If it is assigned already, --ttl and --expired replace the old values."""
    name = _role_name(role)
    new = Assignment(name, expired or 0, ttl)

    def change(old: list[Assignment]) -> list[Assignment]:
        if any(item.name == name for item in old):
            return [new if item.name == name else item for item in old]
        return [*old, new]

    account, changed = _change(ctx, user, app_id, change)
    click.echo(f"{account.login} has the role {name} at application {app_id}{'' if changed else ', as before'}")


@command.command()
@USER
@click.argument("role")
@APP
@click.pass_context
def revoke(ctx: click.Context, user: str, role: str, app_id: int) -> None:
    """Remove an assigned ROLE from a user. Roles from defaults, conditions or groups are not affected."""
    name = _role_name(role)
    account, changed = _change(ctx, user, app_id, lambda old: [item for item in old if item.name != name])
    if not changed:
        raise CommandFailure(f"{account.login} has no role {name} assigned at application {app_id}")
    click.echo(f"{account.login} no longer has the role {name} at application {app_id}")


def _change(ctx: click.Context, user: str, app_id: int, change: Change) -> tuple[User, bool]:
    """Changes the assigned roles with the same checks as the API."""

    async def work(services: CommandServices) -> tuple[User, bool]:
        account = await _require_user(services, user)
        loaded = await _load_facts(services, account, app_id)
        if loaded.is_removed:
            raise CommandFailure(f"application {app_id}, or its project, is removed")

        async def save(tx: Transaction) -> bool:
            row = await lock_application(tx, app_id)
            known = await read_roles(tx, app_id)
            old = await read_record(tx, account.user_id, app_id)
            new_roles = tuple(change(list(await read_assigned_roles(tx, account.user_id, app_id))))
            new = await save_record(tx, command_line_actor(), account.user_id, row, known, {}, new_roles)
            return new != old

        try:
            return account, await services.database.transaction(save)
        except InvalidInput as error:
            known = ", ".join(sorted(loaded.application.roles)) or "none"
            raise CommandFailure(f"{error.message}; the roles of application {app_id}: {known}") from None

    return with_services(ctx, work)


def _role_name(role: str) -> str:
    try:
        return read_segment(role, "ROLE")
    except InvalidInput as error:
        raise click.UsageError(error.message) from None


async def _require_user(services: CommandServices, name: str) -> User:
    user = await services.users.find(name)
    if user is None:
        raise CommandFailure(f"there is no user {name}")
    return user


async def _load_facts(services: CommandServices, user: User, app_id: int) -> LoadedFacts:
    loaded = await services.facts.load(user.user_id, app_id, None)
    if loaded is None:
        raise CommandFailure(f"there is no application {app_id}; `sso app list` shows them")
    return loaded
