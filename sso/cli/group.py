"""sso group …"""

from typing import TYPE_CHECKING, Any

import click

from sso.cli.arguments import DESCRIPTION
from sso.cli.command_groups import Subcommands
from sso.cli.confirmation import confirm, yes_option
from sso.cli.context import CommandFailure, utf8_argument
from sso.cli.echo import echo
from sso.cli.group_lookup import GROUP, IN_PROJECT, with_group
from sso.cli.group_members import condition, member
from sso.cli.group_roles import role
from sso.cli.option_errors import option_errors
from sso.cli.output import Format, list_options, print_list, print_record, record_options
from sso.cli.records import with_records
from sso.cli.records.types import Fields, Records
from sso.perm.engine.reserved_names import PROJECT_TAG

if TYPE_CHECKING:
    from sso.cli.records.service import ServiceRecords


ACCESS = ("allow", "disallow")  # the lists of a project
TAG = click.option(
    "--tag", "tags", multiple=True, metavar="TAG", callback=utf8_argument, help="Tag; may be given several times."
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

    async def work(records: "ServiceRecords") -> Records:
        return await records.groups.list((await records.projects.find(project))["id"] if project else None)

    print_list(form, [_listed(group) for group in with_records(ctx, work)])


def _listed(group: Fields) -> Fields:
    counts = {name: len(group[name]) for name in ("users", "conditions")}
    return {**{name: group[name] for name in ("id", "title", "project_id")}, **counts, "tags": group["tags"]}


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

    async def work(records: "ServiceRecords") -> Fields:
        record = await records.groups.find(group, project)
        home = await records.projects.find(record["project_id"])
        access = next((name for name in ACCESS if record["id"] in home[name]), "none")
        roles = [
            {"application_id": int(key), "role": item["role"], "action": item["action"]}
            for key, service in home["settings"].get("services", {}).items()
            for item in service["groups"]
            if item["group_id"] == record["id"]
        ]
        return record | {"roles": roles, "access": access}

    print_record(form, with_records(ctx, work))


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

    async def work(records: "ServiceRecords") -> str:
        from sso.perm.input.groups import read_group_fields
        from sso.perm.input.tags import read_tags

        fields = read_group_fields({"title": title, "description": description or ""}) | {"tags": read_tags([*tags])}
        return await records.groups.add((await records.projects.find(project))["id"], fields)

    with option_errors({"title": "TITLE", "description": "--description", "tags": "--tag"}, f"project {project}"):
        echo(f"group_id {with_records(ctx, work)}")


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

    def changed(old: Fields) -> Fields:
        from sso.perm.input.groups import read_group_fields
        from sso.perm.input.tags import read_tags

        for tag in removed_tags:
            if tag not in old["tags"]:
                raise CommandFailure(f"--remove-tag: the group has no tag {tag}; it has: {', '.join(old['tags'])}")
        new: dict[str, Any] = read_group_fields(fields) if fields else {}
        if tags or removed_tags:
            new["tags"] = read_tags([tag for tag in (*old["tags"], *tags) if tag not in removed_tags])
        return new

    options = {"title": "--title", "description": "--description", "tags": "--tag"}
    row = with_group(ctx, group, project, options, lambda records, row: records.groups.change(row, changed))
    echo(f"group {title or row['title']} of the project {row['project_id']} is changed")


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

    async def save(records: "ServiceRecords", row: Fields) -> None:
        if access != "none" and PROJECT_TAG not in row["tags"]:
            raise CommandFailure(
                f"GROUP: {row['title']} lacks the tag {PROJECT_TAG}; "
                f"`sso group change {row['id']} --tag {PROJECT_TAG}` adds it"
            )

        def changed(home: Fields) -> Fields:
            lists = {name: [item for item in home[name] if item != row["id"]] for name in ACCESS}
            if access != "none":
                lists[access].append(row["id"])
            return lists

        await records.projects.change(row["project_id"], changed)

    row = with_group(ctx, group, project, {"allow": "GROUP", "disallow": "GROUP"}, save)
    echo(f"access of group {row['title']} to the project {row['project_id']}: {access}")


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
    row = with_group(ctx, group, project, {}, lambda records, row: records.groups.delete(row))
    echo(f"group {row['title']} of the project {row['project_id']} is deleted")
