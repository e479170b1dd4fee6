"""sso project …"""

from typing import TYPE_CHECKING, Any

import click

from sso.cli.arguments import DESCRIPTION, PROJECT
from sso.cli.confirmation import confirm, yes_option
from sso.cli.context import CommandFailure, utf8_argument, with_services
from sso.cli.groups import Subcommands
from sso.cli.lookups import require_project, require_user
from sso.cli.option_errors import option_errors
from sso.cli.output import Format, Record, list_options, print_list, print_record, record_options
from sso.cli.permission_write import write_permissions
from sso.cli.project_member import member
from sso.cli.services import CommandServices
from sso.db.statement import Statement
from sso.perm.changes.scope import Scope

if TYPE_CHECKING:
    from sso.db.transaction import Row, Transaction
    from sso.perm.stores.audit import AuditActor

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
OPTIONS = {
    "title or aliases": "TITLE or --alias",
    "title": "TITLE",
    "description": "--description",
    "aliases": "--alias",
    r"settings\.allowed_domains": "--domain",
}

_LIST = Statement(
    """SELECT p.id, p.title, p.removed,
        (SELECT count(*) FROM applications a WHERE a.project_id = p.id AND NOT a.removed) AS applications,
        (SELECT count(*) FROM user_groups g WHERE g.project_id = p.id) AS groups,
        (SELECT count(DISTINCT user_id) FROM project_members m WHERE m.project_id = p.id) AS members
    FROM projects p ORDER BY p.id"""
)


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
    """List the projects: id, title, number of applications, groups and members.

    \b
    Example:
      sso project list
    """

    async def work(services: CommandServices) -> "list[Row]":
        return await services.database.rows(_LIST)

    def line(record: Record) -> list[object]:
        counts = [f"{name} {record[name]}" for name in ("applications", "groups", "members")]
        marks = ["removed"] if record["removed"] else []
        return [record["id"], record["title"], ", ".join(counts), *marks]

    print_list(form, [dict(row) for row in with_services(ctx, work, with_permissions=False)], line)


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

    async def work(services: CommandServices) -> dict[str, Any]:
        from sso.perm.stores.memberships import read_membership
        from sso.perm.stores.projects import project_json

        row = await require_project(services.database, project)
        membership = await read_membership(services.database, row["id"])
        return project_json(row) | {name: membership[name] for name in ("allow", "disallow")}

    print_record(form, with_services(ctx, work))


@command.command()
@click.argument("title", callback=utf8_argument)
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
    """
    settings = {"allowed_domains": list(domains)} if domains else {}
    record = {"title": title, "description": description or "", "aliases": list(aliases), "settings": settings}

    async def work(services: CommandServices) -> str:
        from sso.perm.input.names import project_id_from_title
        from sso.perm.input.project import read_project_fields
        from sso.perm.stores.projects import create_project, project_name_conflicts

        project_id = project_id_from_title(title, "title")
        fields, _ = read_project_fields(project_id, record)
        user_ids = [(await require_user(services, name)).user_id for name in admins]
        with project_name_conflicts():
            admin_ids = list(dict.fromkeys(user_ids))
            row = await write_permissions(
                services, Scope.project(project_id), create_project, services.actor, project_id, fields, "", admin_ids
            )
        return str(row["id"])

    with option_errors(OPTIONS | {"roles": "--admin"}):
        click.echo(f"project_id {with_services(ctx, work)}")


@command.command()
@PROJECT
@click.option("--title", callback=utf8_argument, help="New title. The id stays.")
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

    async def work(services: CommandServices) -> str:
        from sso.perm.stores.projects import project_name_conflicts

        project_id: str = (await require_project(services.database, project))["id"]
        with project_name_conflicts():
            await write_permissions(services, Scope.project(project_id), _save, services.actor, project_id, options)
        return project_id

    with option_errors(OPTIONS | {"title or aliases": "--title or --alias", "title": "--title"}, f"project {project}"):
        click.echo(f"project {with_services(ctx, work)} is changed")


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

    async def work(services: CommandServices) -> str:
        from sso.perm.stores.projects import remove_project

        row = await require_project(services.database, project)
        if row["removed"]:
            raise CommandFailure(f"project {row['id']} is deleted already")
        await write_permissions(services, Scope.project(row["id"]), remove_project, services.actor, row["id"])
        return str(row["id"])

    click.echo(f"project {with_services(ctx, work)} is deleted")


async def _save(tx: "Transaction", actor: "AuditActor", project_id: str, options: dict[str, Any]) -> None:
    from sso.perm.input.project import read_project_fields
    from sso.perm.stores.administrators import keep_administrator
    from sso.perm.stores.projects import read_project, save_project

    async with keep_administrator(tx, project_id):
        old = await read_project(tx, project_id)
        assert old is not None
        record = {name: options[name] for name in ("title", "description") if options[name] is not None}
        if options["aliases"] or options["removed_aliases"]:
            record["aliases"] = _edited(old["aliases"], options["aliases"], options["removed_aliases"], "alias")
        if options["domains"] or options["removed_domains"]:
            domains = old["settings"].get("allowed_domains", [])
            edited = _edited(domains, options["domains"], options["removed_domains"], "domain")
            record["settings"] = {"allowed_domains": edited}
        changes, _ = read_project_fields(project_id, record)
        await save_project(tx, actor, project_id, changes)


def _edited(stored: list[str], added: tuple[str, ...], removed: tuple[str, ...], option: str) -> list[str]:
    for name in removed:
        if name not in stored:
            known = ", ".join(stored) or "none"
            raise CommandFailure(f"--remove-{option}: the project has no {option} {name}; it has: {known}")
    return [name for name in stored if name not in removed] + [name for name in added if name not in stored]
