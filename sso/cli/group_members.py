"""sso group member …, sso group condition …"""

from typing import TYPE_CHECKING

import click

from sso.cli.context import CommandFailure, utf8_argument, with_services
from sso.cli.group_lookup import GROUP, IN_PROJECT, change_group
from sso.cli.groups import Subcommands
from sso.cli.lookups import require_group, require_user
from sso.cli.option_errors import option_errors
from sso.cli.output import Format, Record, list_options, print_list
from sso.cli.permission_write import write_permissions
from sso.cli.services import CommandServices
from sso.perm.changes.scope import Scope
from sso.perm.input.condition_notation import parse_condition

if TYPE_CHECKING:
    from sso.db.transaction import Row, Transaction
    from sso.perm.stores.audit import AuditActor

USERS = click.argument("users", metavar="USER...", nargs=-1, required=True, callback=utf8_argument)


@click.group(cls=Subcommands)
def member() -> None:
    """Manage the users who were added to a group. USER is a user id or a login.

    \b
    Example:
      sso group member add Testers ann@example.com bob@example.com
    """


@member.command("list")
@GROUP
@IN_PROJECT
@list_options
@click.pass_context
def list_members(ctx: click.Context, group: str, project: str | None, form: Format | None) -> None:
    """List the users who were added to a group: user id and login. Members by condition are not listed.

    \b
    Example:
      sso group member list Testers
    """

    async def work(services: CommandServices) -> list[Record]:
        row = await require_group(services.database, group, project)
        users = [(user_id, await services.users.get(user_id)) for user_id in row["users"]]
        return [{"user_id": user_id, "login": user.login if user else None} for user_id, user in users]

    print_list(form, with_services(ctx, work))


@member.command("add")
@GROUP
@USERS
@IN_PROJECT
@click.pass_context
def add_member(ctx: click.Context, group: str, users: tuple[str, ...], project: str | None) -> None:
    """Add users to a group (at most 100).

    \b
    Example:
      sso group member add Testers ann@example.com bob@example.com
    """
    row = _change_users(ctx, group, project, users, added=True)
    click.echo(f"added to group {row['title']}: {', '.join(users)}")


@member.command("remove")
@GROUP
@USERS
@IN_PROJECT
@click.pass_context
def remove_member(ctx: click.Context, group: str, users: tuple[str, ...], project: str | None) -> None:
    """Remove users from a group. They may remain members by a condition.

    \b
    Example:
      sso group member remove Testers ann@example.com
    """
    row = _change_users(ctx, group, project, users, added=False)
    click.echo(f"removed from group {row['title']}: {', '.join(users)}")


@click.group(cls=Subcommands)
def condition() -> None:
    """Manage the conditions under which users are members of a group. One of them is enough.

    CONDITION is MEMBER=VALUE, where MEMBER is domain (of the login), uid, tag, purchase or everyone; of several
    conditions in one command, all must be met. Or it is a JSON object, which may also have "and" and "or".

    \b
    Example:
      sso group condition add Testers staff domain=studio.example
      sso group condition add Testers friends '{"or": [{"tag": "beta"}, {"uid": ["1000"]}]}'
    """


@condition.command("add")
@GROUP
@click.argument("title", callback=utf8_argument)
@click.argument("texts", metavar="CONDITION...", nargs=-1, required=True, callback=utf8_argument)
@IN_PROJECT
@click.pass_context
def add_condition(ctx: click.Context, group: str, title: str, texts: tuple[str, ...], project: str | None) -> None:
    """Add a condition with a title to a group. A condition with the same title is replaced.

    \b
    Example:
      sso group condition add Testers staff domain=studio.example
      sso group condition add Testers beta_staff domain=studio.example tag=beta
    """
    new = {"title": title, "condition": parse_condition(texts, "CONDITION")}

    async def save(tx: "Transaction", actor: "AuditActor", row: "Row") -> None:
        from sso.perm.input.groups import read_group_conditions
        from sso.perm.stores.administrators import keep_administrator
        from sso.perm.stores.groups import lock_group, set_group_access

        async with keep_administrator(tx, row["project_id"]):
            old = await lock_group(tx, row["id"], row["project_id"])
            kept = [item for item in old["conditions"] if item["title"] != title]
            conditions, _ = read_group_conditions([*kept, new])
            await set_group_access(tx, actor, old, None, conditions)

    options = {r"conditions\[\d+\]\.title": "TITLE", r"conditions\[\d+\]": "CONDITION", "conditions": "GROUP"}
    row = change_group(ctx, group, project, options, save)
    click.echo(f"group {row['title']} has the condition {title}")


@condition.command("remove")
@GROUP
@click.argument("title", callback=utf8_argument)
@IN_PROJECT
@click.pass_context
def remove_condition(ctx: click.Context, group: str, title: str, project: str | None) -> None:
    """Remove a condition from a group.

    \b
    Example:
      sso group condition remove Testers staff
    """

    async def save(tx: "Transaction", actor: "AuditActor", row: "Row") -> None:
        from sso.perm.stores.administrators import keep_administrator
        from sso.perm.stores.groups import lock_group, set_group_access

        async with keep_administrator(tx, row["project_id"]):
            old = await lock_group(tx, row["id"], row["project_id"])
            kept = [item for item in old["conditions"] if item["title"] != title]
            if kept == old["conditions"]:
                known = ", ".join(item["title"] for item in kept) or "none"
                raise CommandFailure(f"TITLE: the group has no condition {title}; it has: {known}")
            await set_group_access(tx, actor, old, None, kept)

    row = change_group(ctx, group, project, {}, save)
    click.echo(f"group {row['title']} no longer has the condition {title}")


def _change_users(ctx: click.Context, group: str, project: str | None, names: tuple[str, ...], *, added: bool) -> "Row":
    async def work(services: CommandServices) -> "Row":
        row = await require_group(services.database, group, project)
        accounts = {name: (await require_user(services, name)).user_id for name in names}
        scope = Scope.project(row["project_id"])
        await write_permissions(services, scope, _save_users, services.actor, row, accounts, added)
        return row

    with option_errors({"users": "USER"}, f"the project of group {group}"):
        return with_services(ctx, work)


async def _save_users(
    tx: "Transaction", actor: "AuditActor", row: "Row", accounts: dict[str, str], added: bool
) -> None:
    from sso.perm.input.groups import read_group_users
    from sso.perm.stores.administrators import keep_administrator
    from sso.perm.stores.groups import lock_group, set_group_access

    async with keep_administrator(tx, row["project_id"]):
        old = await lock_group(tx, row["id"], row["project_id"])
        for name, user_id in accounts.items():
            if not added and user_id not in old["users"]:
                raise CommandFailure(f"USER: {name} was not added to the group {old['title']}")
        others = [user_id for user_id in old["users"] if user_id not in accounts.values()]
        await set_group_access(
            tx, actor, old, read_group_users([*old["users"], *accounts.values()] if added else others), None
        )
