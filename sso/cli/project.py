"""sso project …"""

from typing import Any

import click

from sso.cli.context import CommandFailure, command_line_actor, with_services
from sso.cli.output import Format, Record, json_option, list_options, print_list, print_record
from sso.cli.services import CommandServices
from sso.db.statement import Statement
from sso.db.transaction import Row
from sso.perm.stores.memberships import read_membership
from sso.perm.stores.projects import project_json, read_project, remove_project, resolve_project_id

PROJECT = click.argument("project")

_LIST = Statement(
    """SELECT p.id, p.title, p.removed,
        (SELECT count(*) FROM applications a WHERE a.project_id = p.id AND NOT a.removed) AS applications,
        (SELECT count(*) FROM user_groups g WHERE g.project_id = p.id) AS groups,
        (SELECT count(DISTINCT user_id) FROM project_members m WHERE m.project_id = p.id) AS members
    FROM projects p ORDER BY p.id"""
)


@click.group()
def command() -> None:
    """Show and remove projects and list their members. PROJECT is an id or an alias.

    Projects are created with `sso apply` or over the API.
    """


@command.command("list")
@list_options
@click.pass_context
def list_projects(ctx: click.Context, form: Format | None) -> None:
    """List the projects: id, title, number of applications, groups and members."""

    async def work(services: CommandServices) -> list[Row]:
        return await services.database.rows(_LIST)

    def line(record: Record) -> list[object]:
        counts = [f"{name} {record[name]}" for name in ("applications", "groups", "members")]
        marks = ["removed"] if record["removed"] else []
        return [record["id"], record["title"], ", ".join(counts), *marks]

    print_list(form, [dict(row) for row in with_services(ctx, work)], line)


@command.command()
@PROJECT
@json_option
@click.pass_context
def show(ctx: click.Context, project: str, form: Format | None) -> None:
    """Show a project."""

    async def work(services: CommandServices) -> dict[str, Any]:
        return project_json(await _require_project(services, project))

    print_record(form, with_services(ctx, work))


@command.command()
@PROJECT
@list_options
@click.pass_context
def members(ctx: click.Context, project: str, form: Format | None) -> None:
    """List the members of a project: user id, login and roles."""

    async def work(services: CommandServices) -> list[Record]:
        row = await _require_project(services, project)
        members: list[Record] = []
        for member in (await read_membership(services.database, row["id"]))["users"]:
            user = await services.users.get(member["user_id"])
            login = user.login if user else None
            members.append({"user_id": member["user_id"], "login": login, "roles": _roles(member["roles"])})
        return members

    def line(record: Record) -> list[object]:
        return [record["user_id"], record["login"] or "-", ", ".join(record["roles"])]

    print_list(form, with_services(ctx, work), line)


@command.command()
@PROJECT
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_context
def remove(ctx: click.Context, project: str, yes: bool) -> None:
    """Remove a project. Its members, and the keys and service JWTs of its applications, lose their access.

    The records are kept and marked as removed.
    """
    if not yes:
        click.confirm(f"Remove the project {project}?", abort=True)

    async def work(services: CommandServices) -> str:
        row = await _require_project(services, project)
        if row["removed"]:
            raise CommandFailure(f"{row['id']} is already removed")
        await services.database.transaction(remove_project, command_line_actor(), row["id"])
        return str(row["id"])

    click.echo(f"{with_services(ctx, work)} is removed")


async def _require_project(services: CommandServices, name: str) -> Row:
    row = await read_project(services.database, await resolve_project_id(services.database, name))
    if row is None:
        raise CommandFailure(f"there is no project {name}; `sso project list` shows them")
    return row


def _roles(roles: dict[str, Any]) -> list[str]:
    """Returns texts such as ``admin`` and ``app_admin at applications.10``."""
    texts = [_role_name(role) for role in roles.get("project", [])]
    for level in ("applications", "services", "groups"):
        for resource, assigned in roles.get(level, {}).items():
            texts += [f"{_role_name(role)} at {level}.{resource}" for role in assigned]
    return texts


def _role_name(role: Any) -> str:
    return role if isinstance(role, str) else str(role["name"])
