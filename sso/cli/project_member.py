"""sso project member …"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from sso.cli.arguments import EXPIRED, PROJECT, ROLE, TTL, USER
from sso.cli.context import CommandFailure, utf8_argument, with_services
from sso.cli.groups import Subcommands
from sso.cli.lookups import require_group, require_project, require_role, require_user
from sso.cli.option_errors import option_errors
from sso.cli.output import Format, Record, list_options, print_list
from sso.cli.permission_write import write_permissions
from sso.cli.services import CommandServices
from sso.cli.types import APPLICATION_ID
from sso.perm.changes.scope import Scope
from sso.perm.engine.names import CENTRAL_APPLICATION_ID

if TYPE_CHECKING:
    from sso.db.transaction import Transaction
    from sso.perm.stores.audit import AuditActor

Command = Callable[..., Any]
Change = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]  # of the users of a membership

LEVELS = {"app": "applications", "service": "services", "group": "groups"}
OPTIONS = {
    r"users\[\d+\]\.roles\.applications": "--app",
    r"users\[\d+\]\.roles\.services": "--service",
    r"users\[\d+\]\.roles\.groups": "--group",
    r"users\[\d+\]\.roles\.project": "ROLE",
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

    async def work(services: CommandServices) -> list[Record]:
        from sso.perm.stores.memberships import read_membership

        row = await require_project(services.database, project)
        members: list[Record] = []
        for item in (await read_membership(services.database, row["id"]))["users"]:
            user = await services.users.get(item["user_id"])
            login = user.login if user else None
            members.append({"user_id": item["user_id"], "login": login, "roles": _role_texts(item["roles"])})
        return members

    def line(record: Record) -> list[object]:
        return [record["user_id"], record["login"] or "-", ", ".join(record["roles"])]

    print_list(form, with_services(ctx, work), line)


@member.command()
@PROJECT
@USER
@ROLE
@level_options
@TTL
@EXPIRED
@click.pass_context
def add(ctx: click.Context, /, project: str, user: str, role: str, ttl: int, expired: int, **levels: Any) -> None:
    """Give USER a role in a project. If the user has it already, --ttl and --expired replace the old values.

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
    click.echo(f"{login} has the role {role} {place}{'' if changed else ', as before'}")


@member.command()
@PROJECT
@USER
@click.argument("role", required=False, callback=utf8_argument)
@level_options
@click.pass_context
def remove(ctx: click.Context, /, project: str, user: str, role: str | None, **levels: Any) -> None:
    """Take ROLE in a project away from USER; without ROLE, all roles (with --app and the like: all roles there).

    \b
    Example:
      sso project member remove red_dawn bob@example.com developer
      sso project member remove red_dawn bob@example.com
    """

    def without_role(roles: list[Any]) -> list[Any]:
        return [item for item in roles if role is not None and _name(item) != role]

    everywhere = role is None and not any(levels.values())
    login, place, changed = _change(ctx, project, user, levels, None if everywhere else without_role)
    if not changed:
        raise CommandFailure(f"{login} has no role{f' {role}' if role else ''} {place}")
    click.echo(f"{login} no longer has {f'the role {role}' if role else 'a role'} {place}")


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

    async def work(services: CommandServices) -> tuple[str, str, bool]:
        project_id: str = (await require_project(services.database, project))["id"]
        account = await require_user(services, user)
        if levels["group"]:
            levels["group"] = (await require_group(services.database, levels["group"], project_id))["id"]

        def change(users: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return _changed_users(users, account.user_id, levels, change_roles)

        scope = Scope.project(project_id)
        changed = await write_permissions(services, scope, _save, services.actor, project_id, change, new_role)
        return account.login, _place(project_id, levels), changed

    with option_errors(OPTIONS, f"project {project}"):
        return with_services(ctx, work)


def _changed_users(
    users: list[dict[str, Any]],
    user_id: str,
    levels: dict[str, Any],
    change_roles: Callable[[list[Any]], list[Any]] | None,
) -> list[dict[str, Any]]:
    """Returns the users of a membership with the roles of one user changed at one level."""
    roles = next((dict(item["roles"]) for item in users if item["user_id"] == user_id), {})
    others = [item for item in users if item["user_id"] != user_id]
    if change_roles is None:
        return others
    option = next((name for name, value in levels.items() if value is not None), None)
    if option is None:
        roles["project"] = change_roles(roles.get("project", []))
    else:
        resource = str(levels[option])
        at_level = roles.get(LEVELS[option], {})
        roles[LEVELS[option]] = at_level | {resource: change_roles(at_level.get(resource, []))}
    return [*others, {"user_id": user_id, "roles": roles}]


async def _save(tx: "Transaction", actor: "AuditActor", project_id: str, change: Change, new_role: str | None) -> bool:
    from sso.perm.stores.administrators import keep_administrator
    from sso.perm.stores.memberships import read_membership, save_membership
    from sso.perm.stores.roles import read_roles

    async with keep_administrator(tx, project_id):
        if new_role is not None:
            require_role(await read_roles(tx, CENTRAL_APPLICATION_ID), new_role, CENTRAL_APPLICATION_ID)
        before = await read_membership(tx, project_id)
        after, _ = await save_membership(tx, actor, project_id, {"users": change(before["users"])})
    return after != before


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
    return f"{role['name']} until {datetime.fromtimestamp(role['expired'], UTC):%Y-%m-%d %H:%M:%SZ}"


def _name(role: Any) -> str:
    return role if isinstance(role, str) else str(role["name"])
