"""sso project member …"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from sso.cli.arguments import PROJECT, ROLE, TTL, UNTIL, USER
from sso.cli.command_groups import Subcommands
from sso.cli.context import CommandFailure, utf8_argument
from sso.cli.echo import echo
from sso.cli.option_errors import option_errors
from sso.cli.output import Format, Record, list_options, print_list
from sso.cli.records import with_records
from sso.cli.records.types import Fields
from sso.cli.types import APPLICATION_ID
from sso.core.moments import utc_moment
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID

if TYPE_CHECKING:
    from sso.cli.records.service import ServiceRecords


Command = Callable[..., Any]

LEVELS = {"app": "applications", "service": "services", "group": "groups"}
OPTIONS = {
    r"(?:users\[\d+\]\.)?roles\.applications": "--app",
    r"(?:users\[\d+\]\.)?roles\.services": "--service",
    r"(?:users\[\d+\]\.)?roles\.groups": "--group",
    r"(?:users\[\d+\]\.)?roles\.project": "ROLE",
    "roles": "ROLE",
    "users": "USER",
}


def level_options(command: Command) -> Command:
    """Adds the options for a role at one application, service or group of the project."""
    for name, kind, text in (
        ("group", None, "group (id or title)"),
        ("service", APPLICATION_ID, "service (application id)"),
        ("app", APPLICATION_ID, "application (id)"),
    ):
        help_text = f"Only at this {text} of the project."
        command = click.option(f"--{name}", type=kind, callback=None if kind else utf8_argument, help=help_text)(
            command
        )
    return command


@click.group(cls=Subcommands)
def member() -> None:
    """Manage the members of a project. PROJECT is an id or an alias, USER a user id or a login.

    Members have roles of the central application: admin, manager, developer, viewer and others that
    `sso role list` shows.

    \b
    Example:
      sso project member add red_dawn bob@example.com developer
    """


@member.command("list")
@PROJECT
@list_options
@click.pass_context
def list_members(ctx: click.Context, project: str, form: Format | None) -> None:
    """List the members of a project: user id, login and roles.

    \b
    Example:
      sso project member list red_dawn
    """

    async def work(records: "ServiceRecords") -> list[Record]:
        members = await records.projects.members((await records.projects.find(project))["id"])
        return [{**member, "roles": _role_texts(member["roles"])} for member in members]

    def line(record: Record) -> list[object]:
        return [record["user_id"], record["login"] or "-", ", ".join(record["roles"])]

    print_list(form, with_records(ctx, work), line)


@member.command()
@PROJECT
@USER
@ROLE
@level_options
@TTL
@UNTIL
@click.pass_context
def add(ctx: click.Context, /, project: str, user: str, role: str, ttl: int, expired: int, **levels: Any) -> None:
    """Give USER a role in a project. If the user has it already, --ttl and --until replace the old values.

    \b
    Example:
      sso project member add red_dawn bob@example.com developer
      sso project member add red_dawn bob@example.com app_admin --app 10
    """
    limits = {name: value for name, value in (("expired", expired), ("ttl", ttl)) if value}
    new = {"name": role, **limits} if limits else role

    def with_role(roles: list[Any]) -> list[Any]:
        if any(_name(item) == role for item in roles):
            return [new if _name(item) == role else item for item in roles]
        return [*roles, new]

    login, place, changed = _change(ctx, project, user, levels, with_role, role)
    echo(f"{login} has the role {role} {place}{'' if changed else ', as before'}")


@member.command()
@PROJECT
@USER
@click.argument("role", required=False, callback=utf8_argument)
@level_options
@click.pass_context
def delete(ctx: click.Context, /, project: str, user: str, role: str | None, **levels: Any) -> None:
    """Take ROLE in a project away from USER; without ROLE, all roles (with --app and the like: all roles there).

    \b
    Example:
      sso project member delete red_dawn bob@example.com developer
      sso project member delete red_dawn bob@example.com
    """

    def without_role(roles: list[Any]) -> list[Any]:
        return [item for item in roles if role is not None and _name(item) != role]

    everywhere = role is None and not any(levels.values())
    login, place, changed = _change(ctx, project, user, levels, None if everywhere else without_role)
    if not changed:
        raise CommandFailure(f"{login} has no role{f' {role}' if role else ''} {place}")
    echo(f"{login} no longer has {f'the role {role}' if role else 'a role'} {place}")


def _change(
    ctx: click.Context,
    project: str,
    user: str,
    levels: dict[str, Any],
    change_roles: Callable[[list[Any]], list[Any]] | None,
    new_role: str | None = None,
) -> tuple[str, str, bool]:
    """Changes the user's roles at one level, or removes the member.

    Returns the login, the place of the roles as text, and whether anything has changed.
    """
    if sum(value is not None for value in levels.values()) > 1:
        raise click.UsageError("expected only one of --app, --service and --group")

    async def work(records: "ServiceRecords") -> tuple[str, str, bool]:
        project_id: str = (await records.projects.find(project))["id"]
        account = await records.users.find(user)
        if levels["group"]:
            levels["group"] = (await records.groups.find(levels["group"], project_id))["id"]
        if new_role is not None:
            await records.roles.require(CENTRAL_APPLICATION_ID, new_role)
        changed = await records.projects.change_member(
            project_id, account["user_id"], lambda roles: _changed_roles(roles, levels, change_roles)
        )
        return account["login"], _place(project_id, levels), changed

    with option_errors(OPTIONS, f"project {project}"):
        return with_records(ctx, work)


def _changed_roles(
    roles: Fields, levels: dict[str, Any], change_roles: Callable[[list[Any]], list[Any]] | None
) -> Fields:
    """Returns the roles of a member with those at one level changed; none at all without ``change_roles``."""
    if change_roles is None:
        return {}
    option = next((name for name, value in levels.items() if value is not None), None)
    if option is None:
        changed = {**roles, "project": change_roles(roles.get("project", []))}
    else:
        resource, level = str(levels[option]), LEVELS[option]
        at_level = roles.get(level, {})
        at_level = at_level | {resource: change_roles(at_level.get(resource, []))}
        changed = {**roles, level: {name: assigned for name, assigned in at_level.items() if assigned}}
    return {level: assigned for level, assigned in changed.items() if assigned}


def _place(project_id: str, levels: dict[str, Any]) -> str:
    at = [f" at {LEVELS[name]}.{value}" for name, value in levels.items() if value is not None]
    return f"in the project {project_id}{''.join(at)}"


def _role_texts(roles: dict[str, Any]) -> list[str]:
    """Returns texts such as ``admin`` and ``app_admin at applications.10``."""
    texts = [_text(role) for role in roles.get("project", [])]
    for level in LEVELS.values():
        for resource, assigned in roles.get(level, {}).items():
            texts += [f"{_text(role)} at {level}.{resource}" for role in assigned]
    return texts


def _text(role: Any) -> str:
    if isinstance(role, str):
        return role
    if role.get("ttl"):
        return f"{role['name']} for {role['ttl']} s after each read"
    return f"{role['name']} until {utc_moment(role['expired']):%Y-%m-%d %H:%M:%SZ}"


def _name(role: Any) -> str:
    return role if isinstance(role, str) else str(role["name"])
