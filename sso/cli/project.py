"""sso project …"""

from typing import TYPE_CHECKING, Any

import click

from sso.cli.arguments import DESCRIPTION, PROJECT
from sso.cli.command_groups import Subcommands
from sso.cli.confirmation import confirm, yes_option
from sso.cli.context import CommandFailure, utf8_argument
from sso.cli.echo import echo
from sso.cli.option_errors import option_errors
from sso.cli.output import Format, Record, list_options, print_list, print_record, record_options
from sso.cli.project_member import member
from sso.cli.records import with_records
from sso.cli.records.types import Fields

if TYPE_CHECKING:
    from sso.cli.records.service import ServiceRecords


ALIAS = click.option(
    "--alias",
    "aliases",
    multiple=True,
    metavar="NAME",
    callback=utf8_argument,
    help="Another name of the project; may be given several times.",
)
DOMAIN = click.option(
    "--domain",
    "domains",
    multiple=True,
    metavar="DOMAIN",
    callback=utf8_argument,
    help="Only logins of these domains have access; may be given several times.",
)
DISPLAY_NAME = click.option(
    "--display-name",
    metavar="NAME",
    callback=utf8_argument,
    help="Name that people see in place of the title, in any script; at most 100 characters.",
)
OPTIONS = {
    "title": "TITLE",
    "display_name": "--display-name",
    "description": "--description",
    "aliases": "--alias",
    r"settings\.allowed_domains": "--domain",
}


@click.group(cls=Subcommands)
def command() -> None:
    """Manage projects and their members. PROJECT is an id or an alias.

    A project is the space of a team: it has applications (`sso app`), groups of users (`sso group`), and members, who
    have roles in it.

    \b
    Example:
      sso project add "Red Dawn" --admin ann@example.com
      sso project member add red_dawn bob@example.com developer
    """


command.add_command(member)


@command.command("list")
@list_options
@click.pass_context
def list_projects(ctx: click.Context, form: Format | None) -> None:
    """List the projects: id, name, number of applications, groups and members.

    \b
    Example:
      sso project list
    """

    def line(record: Record) -> list[object]:
        counts = [f"{name} {record[name]}" for name in ("applications", "groups", "members")]
        marks = ["removed"] if record["removed"] else []
        return [record["id"], record["display_name"] or record["title"], ", ".join(counts), *marks]

    print_list(form, with_records(ctx, lambda records: records.projects.list()), line)


@command.command()
@PROJECT
@record_options
@click.pass_context
def show(ctx: click.Context, project: str, form: Format | None) -> None:
    """Show a project with the groups that have access to it (allow) or have not (disallow).

    \b
    Example:
      sso project show red_dawn
    """
    print_record(form, with_records(ctx, lambda records: records.projects.find(project)))


@command.command()
@click.argument("title", callback=utf8_argument)
@DISPLAY_NAME
@DESCRIPTION
@ALIAS
@DOMAIN
@click.option(
    "--admin",
    "admins",
    multiple=True,
    metavar="USER",
    callback=utf8_argument,
    help="User id or login of an administrator; may be given several times.",
)
@click.pass_context
def add(
    ctx: click.Context,
    title: str,
    display_name: str | None,
    description: str | None,
    aliases: tuple[str, ...],
    domains: tuple[str, ...],
    admins: tuple[str, ...],
) -> None:
    """Add a project and print its id.

    TITLE has 1 to 32 Latin letters, digits, spaces and underscores; the id is TITLE in lower case with underscores.
    Administrators get the role admin in the project.

    \b
    Example:
      sso project add "Red Dawn" --admin ann@example.com --alias rd
      sso project add "Night Harbor" --display-name "Night Harbor: Reborn"
    """
    settings = {"allowed_domains": list(domains)} if domains else {}
    record = {"title": title, "description": description or "", "aliases": list(aliases), "settings": settings}
    record |= {"display_name": display_name} if display_name else {}

    async def work(records: "ServiceRecords") -> str:
        from sso.perm.input.names import project_id_from_title
        from sso.perm.input.project import NamedProjectFields, read_project_fields

        project_id = project_id_from_title(title, ("title",))
        fields, _ = read_project_fields(project_id, record, model=NamedProjectFields)
        user_ids = [(await records.users.find(name))["user_id"] for name in admins]
        await records.projects.add(project_id, fields, list(dict.fromkeys(user_ids)))
        return project_id

    with option_errors(OPTIONS | {"roles": "--admin"}):
        echo(f"project_id {with_records(ctx, work)}")


@command.command()
@PROJECT
@click.option("--title", callback=utf8_argument, help="New title. The id stays.")
@DISPLAY_NAME
@DESCRIPTION
@ALIAS
@click.option(
    "--remove-alias", "removed_aliases", multiple=True, metavar="NAME", callback=utf8_argument, help="Name to remove."
)
@DOMAIN
@click.option(
    "--remove-domain",
    "removed_domains",
    multiple=True,
    metavar="DOMAIN",
    callback=utf8_argument,
    help="Domain to remove. Without domains, all logins have access.",
)
@click.pass_context
def change(ctx: click.Context, /, project: str, **options: Any) -> None:
    """Change a project. --alias and --domain add to the lists; what no option names stays.

    \b
    Example:
      sso project change red_dawn --title "Red Dawn 2" --alias rd --domain studio.example
    """
    if not any(value is not None and value != () for value in options.values()):
        raise click.UsageError("expected at least one option that changes the project")

    async def work(records: "ServiceRecords") -> str:
        project_id: str = (await records.projects.find(project))["id"]
        await records.projects.change(project_id, lambda old: _changes(old, options))
        return project_id

    with option_errors(OPTIONS | {"title": "--title"}, f"project {project}"):
        echo(f"project {with_records(ctx, work)} is changed")


@command.command()
@PROJECT
@yes_option
@click.pass_context
def delete(ctx: click.Context, project: str, yes: bool) -> None:
    """Delete a project. Its members, and the keys and service JWTs of its applications, lose their access.

    The records are kept and marked as removed, and the name is not free again.

    \b
    Example:
      sso project delete red_dawn --yes
    """
    confirm(f"Delete the project {project}? Its members and applications lose their access.", yes)

    async def work(records: "ServiceRecords") -> str:
        record = await records.projects.find(project)
        if record["removed"]:
            raise CommandFailure(f"project {record['id']} is deleted already")
        await records.projects.delete(record["id"])
        return str(record["id"])

    echo(f"project {with_records(ctx, work)} is deleted")


def _changes(old: Fields, options: dict[str, Any]) -> Fields:
    """Returns the fields that the options of `sso project change` change."""
    from sso.perm.input.project import NamedProjectFields, read_project_fields

    record = {name: options[name] for name in ("title", "display_name", "description") if options[name] is not None}
    if options["aliases"] or options["removed_aliases"]:
        record["aliases"] = _edited(old["aliases"], options["aliases"], options["removed_aliases"], "alias")
    if options["domains"] or options["removed_domains"]:
        domains = old["settings"].get("allowed_domains", [])
        edited = _edited(domains, options["domains"], options["removed_domains"], "domain")
        record["settings"] = {"allowed_domains": edited}
    return read_project_fields(old["id"], record, model=NamedProjectFields)[0]


def _edited(stored: list[str], added: tuple[str, ...], removed: tuple[str, ...], option: str) -> list[str]:
    for name in removed:
        if name not in stored:
            known = ", ".join(stored) or "none"
            raise CommandFailure(f"--remove-{option}: the project has no {option} {name}; it has: {known}")
    return [name for name in stored if name not in removed] + [name for name in added if name not in stored]
