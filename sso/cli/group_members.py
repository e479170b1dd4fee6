"""sso group member …, sso group condition …"""

from typing import TYPE_CHECKING

import click

from sso.cli.command_groups import Subcommands
from sso.cli.context import CommandFailure, utf8_argument
from sso.cli.echo import echo
from sso.cli.group_lookup import GROUP, IN_PROJECT, with_group
from sso.cli.output import Format, Record, list_options, print_list
from sso.cli.records import with_records
from sso.cli.records.types import Fields
from sso.perm.input.condition_notation import parse_condition

if TYPE_CHECKING:
    from sso.cli.records.service import ServiceRecords


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

    async def work(records: "ServiceRecords") -> list[Record]:
        user_ids = (await records.groups.find(group, project))["users"]
        logins = await records.state.logins(user_ids)
        return [{"user_id": user_id, "login": logins.get(user_id)} for user_id in user_ids]

    print_list(form, with_records(ctx, work))


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
    echo(f"added to group {row['title']}: {', '.join(users)}")


@member.command("delete")
@GROUP
@USERS
@IN_PROJECT
@click.pass_context
def delete_member(ctx: click.Context, group: str, users: tuple[str, ...], project: str | None) -> None:
    """Remove users from a group. They may remain members by a condition.

    \b
    Example:
      sso group member delete Testers ann@example.com
    """
    row = _change_users(ctx, group, project, users, added=False)
    echo(f"removed from group {row['title']}: {', '.join(users)}")


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
    new = {"title": title, "condition": parse_condition(texts, ("CONDITION",))}

    def changed(old: Fields) -> Fields:
        from sso.perm.input.groups import read_group_changes

        kept = [item for item in old["conditions"] if item["title"] != title]
        return read_group_changes({"conditions": [*kept, new]})[0]

    options = {r"conditions\[\d+\]\.title": "TITLE", r"conditions\[\d+\]": "CONDITION", "conditions": "GROUP"}
    row = with_group(ctx, group, project, options, lambda records, row: records.groups.change(row, changed))
    echo(f"group {row['title']} has the condition {title}")


@condition.command("delete")
@GROUP
@click.argument("title", callback=utf8_argument)
@IN_PROJECT
@click.pass_context
def delete_condition(ctx: click.Context, group: str, title: str, project: str | None) -> None:
    """Delete a condition from a group.

    \b
    Example:
      sso group condition delete Testers staff
    """

    def changed(old: Fields) -> Fields:
        kept = [item for item in old["conditions"] if item["title"] != title]
        if kept == old["conditions"]:
            known = ", ".join(item["title"] for item in kept) or "none"
            raise CommandFailure(f"TITLE: the group has no condition {title}; it has: {known}")
        return {"conditions": kept}

    row = with_group(ctx, group, project, {}, lambda records, row: records.groups.change(row, changed))
    echo(f"group {row['title']} no longer has the condition {title}")


def _change_users(
    ctx: click.Context, group: str, project: str | None, names: tuple[str, ...], *, added: bool
) -> Fields:
    async def save(records: "ServiceRecords", row: Fields) -> None:
        accounts = {name: (await records.users.find(name))["user_id"] for name in names}
        await records.groups.change(row, lambda old: _changed_users(old, accounts, added=added))

    return with_group(ctx, group, project, {"users": "USER"}, save)


def _changed_users(old: Fields, accounts: dict[str, str], *, added: bool) -> Fields:
    from sso.perm.input.groups import read_group_changes

    if added:
        return read_group_changes({"users": [*old["users"], *accounts.values()]})[0]
    for name, user_id in accounts.items():
        if user_id not in old["users"]:
            raise CommandFailure(f"USER: {name} was not added to the group {old['title']}")
    return {"users": [user_id for user_id in old["users"] if user_id not in accounts.values()]}
