"""sso group …"""

import secrets
from typing import TYPE_CHECKING, Any

import click

from sso.cli.arguments import DESCRIPTION
from sso.cli.confirmation import confirm, yes_option
from sso.cli.context import CommandFailure, utf8_argument, with_services
from sso.cli.group_lookup import GROUP, IN_PROJECT, change_group
from sso.cli.group_members import condition, member
from sso.cli.group_roles import role
from sso.cli.groups import Subcommands
from sso.cli.lookups import require_group, require_project
from sso.cli.option_errors import option_errors
from sso.cli.output import Format, list_options, print_list, print_record, record_options
from sso.cli.permission_write import write_permissions
from sso.cli.services import CommandServices
from sso.db.statement import Statement
from sso.perm.changes.scope import Scope
from sso.perm.engine.names import PROJECT_TAG

if TYPE_CHECKING:
    from sso.db.transaction import Row, Transaction
    from sso.perm.stores.audit import AuditActor

ACCESS = ("allow", "disallow")  # the lists of a project
TAG = click.option(
    "--tag", "tags", multiple=True, metavar="TAG", callback=utf8_argument, help="Tag; may be given several times."
)

_LIST = Statement(
    """SELECT g.id, g.title, g.project_id, (SELECT count(*) FROM group_users u WHERE u.group_id = g.id) AS users,
        jsonb_array_length(g.conditions) AS conditions, g.tags
    FROM user_groups g JOIN projects p ON p.id = g.project_id AND NOT p.removed
    WHERE CAST(:project_id AS text) IS NULL OR g.project_id = :project_id ORDER BY g.project_id, g.created, g.id"""
)


@click.group(cls=Subcommands)
def command() -> None:
    """Manage groups of users in projects. GROUP is an id or a title.

    A group has users who were added, and conditions under which other users are members. A project gives roles of its
    applications to groups, and may be open only to members of some groups.

    \b
    Example:
      sso group add Testers --project red_dawn
      sso group condition add Testers staff domain=studio.example
      sso group role add Testers moderator --app 10
    """


for part in (member, condition, role):
    command.add_command(part)


@command.command("list")
@click.option("--project", callback=utf8_argument, help="Only groups of this project (id or alias).")
@list_options
@click.pass_context
def list_groups(ctx: click.Context, project: str | None, form: Format | None) -> None:
    """List the groups: id, title, project, number of users and conditions, tags.

    \b
    Example:
      sso group list --project red_dawn
    """

    async def work(services: CommandServices) -> "list[Row]":
        project_id = (await require_project(services.database, project))["id"] if project else None
        return await services.database.rows(_LIST, project_id=project_id)

    print_list(form, [dict(row) for row in with_services(ctx, work, with_permissions=False)])


@command.command()
@GROUP
@IN_PROJECT
@record_options
@click.pass_context
def show(ctx: click.Context, group: str, project: str | None, form: Format | None) -> None:
    """Show a group with its users and conditions, its roles at applications, and whether the project allows it.

    \b
    Example:
      sso group show Testers
    """

    async def work(services: CommandServices) -> dict[str, Any]:
        from sso.perm.stores.groups import group_json
        from sso.perm.stores.memberships import read_membership
        from sso.perm.stores.projects import read_project

        row = await require_group(services.database, group, project)
        home = await read_project(services.database, row["project_id"])
        assert home is not None
        lists = await read_membership(services.database, row["project_id"])
        access = next((name for name in ACCESS if row["id"] in lists[name]), "none")
        roles = [
            {"application_id": int(key), "role": item["role"], "action": item["action"]}
            for key, service in home["settings"].get("services", {}).items()
            for item in service["groups"]
            if item["group_id"] == row["id"]
        ]
        return group_json(row) | {"roles": roles, "access": access}

    print_record(form, with_services(ctx, work))


@command.command()
@click.argument("title", callback=utf8_argument)
@click.option("--project", required=True, callback=utf8_argument, help="Project of the group (id or alias).")
@DESCRIPTION
@TAG
@click.pass_context
def add(ctx: click.Context, title: str, project: str, description: str | None, tags: tuple[str, ...]) -> None:
    """Add a group to a project and print its id. TITLE has 1 to 32 Latin letters, digits, spaces and underscores.

    \b
    Example:
      sso group add Testers --project red_dawn
    """

    async def work(services: CommandServices) -> str:
        from sso.perm.input.groups import read_group_fields
        from sso.perm.input.tags import read_tags

        fields = read_group_fields({"title": title, "description": description or ""}) | {"tags": read_tags([*tags])}
        project_id = (await require_project(services.database, project))["id"]
        scope = Scope.project(project_id)
        row = await write_permissions(
            services, scope, _create, services.actor, project_id, secrets.token_hex(12), fields
        )
        return str(row["id"])

    with option_errors({"title": "TITLE", "description": "--description", "tags": "--tag"}, f"project {project}"):
        click.echo(f"group_id {with_services(ctx, work)}")


@command.command()
@GROUP
@IN_PROJECT
@click.option("--title", callback=utf8_argument, help="New title.")
@DESCRIPTION
@TAG
@click.option(
    "--remove-tag", "removed_tags", multiple=True, metavar="TAG", callback=utf8_argument, help="Tag to remove."
)
@click.pass_context
def change(
    ctx: click.Context,
    group: str,
    project: str | None,
    title: str | None,
    description: str | None,
    tags: tuple[str, ...],
    removed_tags: tuple[str, ...],
) -> None:
    """Change title, description and tags of a group. --tag adds a tag; what no option names stays.

    \b
    Example:
      sso group change Testers --title "Beta testers" --tag project
    """
    fields = {name: value for name, value in (("title", title), ("description", description)) if value is not None}
    if not (fields or tags or removed_tags):
        raise click.UsageError("expected at least one option that changes the group")

    async def save(tx: "Transaction", actor: "AuditActor", row: "Row") -> None:
        from sso.perm.input.groups import read_group_fields
        from sso.perm.input.tags import read_tags
        from sso.perm.stores.groups import lock_group, save_group, set_group_tags

        old = await lock_group(tx, row["id"], row["project_id"])
        for tag in removed_tags:
            if tag not in old["tags"]:
                raise CommandFailure(f"--remove-tag: the group has no tag {tag}; it has: {', '.join(old['tags'])}")
        if fields:
            old = await save_group(tx, actor, old, read_group_fields(fields))
        if tags or removed_tags:
            new = [tag for tag in (*old["tags"], *tags) if tag not in removed_tags]
            await set_group_tags(tx, actor, old, read_tags(new))

    options = {"title": "--title", "description": "--description", "tags": "--tag"}
    row = change_group(ctx, group, project, options, save)
    click.echo(f"group {title or row['title']} of the project {row['project_id']} is changed")


@command.command()
@GROUP
@click.argument("access", type=click.Choice((*ACCESS, "none")))
@IN_PROJECT
@click.pass_context
def access(ctx: click.Context, group: str, access: str, project: str | None) -> None:
    """Set whether members of a group have access to the project.

    If a project allows groups, only their members have access through it. Members of a group that it disallows have
    none. The group needs the tag "project".

    \b
    Example:
      sso group access Testers allow
    """

    async def save(tx: "Transaction", actor: "AuditActor", row: "Row") -> None:
        from sso.perm.stores.administrators import keep_administrator
        from sso.perm.stores.memberships import read_membership, save_membership

        async with keep_administrator(tx, row["project_id"]):
            if access != "none" and PROJECT_TAG not in row["tags"]:
                raise CommandFailure(
                    f"GROUP: {row['title']} lacks the tag {PROJECT_TAG}; "
                    f"`sso group change {row['id']} --tag {PROJECT_TAG}` adds it"
                )
            old = await read_membership(tx, row["project_id"])
            lists = {name: [item for item in old[name] if item != row["id"]] for name in ACCESS}
            if access != "none":
                lists[access].append(row["id"])
            await save_membership(tx, actor, row["project_id"], lists)

    row = change_group(ctx, group, project, {"allow": "GROUP", "disallow": "GROUP"}, save)
    click.echo(f"access of group {row['title']} to the project {row['project_id']}: {access}")


@command.command()
@GROUP
@IN_PROJECT
@yes_option
@click.pass_context
def delete(ctx: click.Context, group: str, project: str | None, yes: bool) -> None:
    """Delete a group. Its members lose the roles that they have through it.

    \b
    Example:
      sso group delete Testers --yes
    """
    confirm(f"Delete the group {group}? Its members lose the roles that they have through it.", yes)

    async def save(tx: "Transaction", actor: "AuditActor", row: "Row") -> None:
        from sso.perm.stores.administrators import keep_administrator
        from sso.perm.stores.groups import delete_group, lock_group

        async with keep_administrator(tx, row["project_id"]):
            await delete_group(tx, actor, await lock_group(tx, row["id"], row["project_id"]))

    row = change_group(ctx, group, project, {}, save)
    click.echo(f"group {row['title']} of the project {row['project_id']} is deleted")


async def _create(
    tx: "Transaction", actor: "AuditActor", project_id: str, group_id: str, fields: dict[str, Any]
) -> "Row":
    from sso.perm.stores.administrators import keep_administrator
    from sso.perm.stores.groups import create_group

    async with keep_administrator(tx, project_id):
        return await create_group(tx, actor, project_id, group_id, fields)
