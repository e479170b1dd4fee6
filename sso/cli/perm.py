"""sso perm …"""

import time
from collections.abc import Callable
from typing import Any

import click
import orjson

from sso.accounts.model import User
from sso.cli.context import CommandFailure, console, with_services
from sso.cli.perm_format import explained
from sso.cli.types import APPLICATION_ID, moment
from sso.db.transaction import Transaction
from sso.perm.engine.answer import TYPES, answer
from sso.perm.engine.decode import assignments
from sso.perm.engine.effective import compute
from sso.perm.engine.explain import explain_rule
from sso.perm.engine.facts import Assignment
from sso.perm.engine.render import EVERYTHING
from sso.perm.errors import InvalidInput
from sso.perm.input.names import read_segment
from sso.perm.input.roles import stored
from sso.perm.names import CENTRAL_APPLICATION_ID
from sso.perm.stores import roles as role_store
from sso.perm.stores.facts import LoadedFacts
from sso.perm.user_data import read_record, save_record
from sso.services import Services

USER = click.argument("user")
APP = click.option(
    "--app",
    "app_id",
    type=APPLICATION_ID,
    default=CENTRAL_APPLICATION_ID,
    show_default=True,
    help="The application; 1 is the central one.",
)
Change = Callable[[list[Assignment]], list[Assignment]]


@click.group()
def command() -> None:
    """What a user may do and why; give and take roles. USER is a user id or a login.

    The central application, 1, holds the rights over the whole service and over projects. To make the first
    administrator: sso perm grant ann@example.com root
    """


@command.command("list")
@USER
@APP
@click.option(
    "--type", "kind", type=click.Choice(TYPES), default="list_short", show_default=True, help="How to show them."
)
@click.pass_context
def list_permissions(ctx: click.Context, user: str, app_id: int, kind: str) -> None:
    """List what a user may do at an application: a line for each rule or role, or the tree as JSON.

    Conditions on addresses do not hold here: there is no request.
    """

    async def work(services: Services) -> Any:
        found = await _loaded(services, await _user(services, user), app_id)
        effective = compute(found.application, found.facts, int(time.time()))
        return answer(kind, found.application, found.facts, effective, EVERYTHING)

    shown = with_services(ctx, work)
    if kind == "tree":
        click.echo(orjson.dumps(shown, option=orjson.OPT_INDENT_2))
    else:
        for line in shown:
            click.echo(line)


@command.command()
@USER
@click.argument("rule")
@APP
@click.option("--json", "as_json", is_flag=True, help="All there is to know, for programs.")
@click.pass_context
def explain(ctx: click.Context, user: str, rule: str, app_id: int, as_json: bool) -> None:
    """Say why a user has a rule, or the nearest reasons why not.

    RULE as the lists show it: can_create_projects, private_data.chat.mute, red_dawn/project.can_view_project.
    """

    async def work(services: Services) -> tuple[User, dict[str, Any]]:
        found_user = await _user(services, user)
        found = await _loaded(services, found_user, app_id)
        effective = compute(found.application, found.facts, int(time.time()))
        return found_user, explain_rule(found.application, found.facts, effective, rule)

    found_user, found = with_services(ctx, work)
    if as_json:
        click.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2))
    else:
        for line in explained(found_user.login, found):
            click.echo(line)


@command.command()
@USER
@click.argument("role")
@APP
@click.option("--ttl", type=click.IntRange(0), default=0, help="Seconds of validity from each look at the permissions.")
@click.option("--expired", type=moment, help="When it ends: Unix seconds, or a date such as 2030-12-31.")
@click.pass_context
def grant(ctx: click.Context, user: str, role: str, app_id: int, ttl: int, expired: int | None) -> None:
    """Assign ROLE to a user; one that is assigned already gets the new limits."""
    name = _role_name(role)
    new = Assignment(name, expired or 0, ttl)

    def change(old: list[Assignment]) -> list[Assignment]:
        if any(item.name == name for item in old):
            return [new if item.name == name else item for item in old]
        return [*old, new]

    found, changed = _change(ctx, user, app_id, change)
    click.echo(f"{found.login} has the role {name} at application {app_id}{'' if changed else ', as before'}")


@command.command()
@USER
@click.argument("role")
@APP
@click.pass_context
def revoke(ctx: click.Context, user: str, role: str, app_id: int) -> None:
    """Take an assigned ROLE from a user. Roles by default, condition or group are not assigned, and stay."""
    name = _role_name(role)
    found, changed = _change(ctx, user, app_id, lambda old: [item for item in old if item.name != name])
    if not changed:
        raise CommandFailure(f"{found.login} has no role {name} assigned at application {app_id}")
    click.echo(f"{found.login} has no longer the role {name} at application {app_id}")


def _change(ctx: click.Context, user: str, app_id: int, change: Change) -> tuple[User, bool]:
    """Change the assigned roles, as a save over the API would."""

    async def work(services: Services) -> tuple[User, bool]:
        found_user = await _user(services, user)
        found = await _loaded(services, found_user, app_id)
        if found.gone:
            raise CommandFailure(f"application {app_id}, or its project, is removed")

        async def save(tx: Transaction) -> bool:
            row = await role_store.lock_application(tx, app_id)
            known = await role_store.read_roles(tx, app_id)
            old = await read_record(tx, found_user.user_id, app_id)
            wanted = stored(change(list(assignments(old["roles"]))))
            new = await save_record(tx, console(), found_user.user_id, row, known, {}, wanted, 0)
            return new != old

        try:
            return found_user, await services.database.transaction(save)
        except InvalidInput as error:
            known = ", ".join(sorted(found.application.roles)) or "none"
            raise CommandFailure(f"{error.message}; the roles of application {app_id}: {known}") from None

    return with_services(ctx, work)


def _role_name(role: str) -> str:
    try:
        return read_segment(role, "ROLE")
    except InvalidInput as error:
        raise click.UsageError(error.message) from None


async def _user(services: Services, name: str) -> User:
    user = await services.users.find(name)
    if user is None:
        raise CommandFailure(f"there is no user {name}")
    return user


async def _loaded(services: Services, user: User, app_id: int) -> LoadedFacts:
    found = await services.permissions.facts.load(user.user_id, app_id, None)
    if found is None:
        raise CommandFailure(f"there is no application {app_id}; `sso app list` shows them")
    return found
