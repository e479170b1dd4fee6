"""sso import realm"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sso.cli.context import CommandFailure, utf8_argument
from sso.cli.echo import echo
from sso.cli.impact_format import format_apply_report
from sso.cli.lookups import unknown_project
from sso.cli.output import print_lines
from sso.cli.progress import Progress
from sso.cli.records import with_records
from sso.cli.records.types import Fields
from sso.cli.user_files.files import open_text, private_file
from sso.core.ids import MAX_APPLICATION_ID

if TYPE_CHECKING:
    from sso.cli.keycloak_realm.conversion import Conversion
    from sso.cli.records.service import ServiceRecords


@click.command("realm")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--application-id",
    metavar="N",
    type=click.IntRange(2, MAX_APPLICATION_ID),
    required=True,
    help="Application that gets the roles; it is created if it does not exist.",
)
@click.option(
    "--services",
    "services_id",
    metavar="N",
    type=click.IntRange(2, MAX_APPLICATION_ID),
    help="Application whose rights service accounts get; it is created if it does not exist (default: leave them out).",
)
@click.option(
    "--project", "project_id", metavar="ID", callback=utf8_argument, help="Project that gets the groups of the realm."
)
@click.option(
    "--dry-run", is_flag=True, help="Change nothing in the service, and show what would be done; --map is written."
)
@click.option(
    "--document",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Change nothing in the service, and write a document for `sso apply`, with the secrets of clients.",
)
@click.option(
    "--map",
    "mapping",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the file that `sso import users --map` reads to give users their roles and tags.",
)
@click.pass_context
def realm(
    ctx: click.Context,
    file: Path,
    application_id: int,
    services_id: int | None,
    project_id: str | None,
    dry_run: bool,
    document: Path | None,
    mapping: Path | None,
) -> None:
    """Import the clients, roles and groups of a realm that Keycloak has exported to FILE (or - for standard input).

    What exists stays as it is. The command names what is left out. Users are imported afterwards with `sso import
    users`, which gives them their roles and tags with the mapping that this command writes.

    \b
    Example:
      sso import realm realm.json --application-id 10 --dry-run
      sso import realm realm.json --application-id 10 --map map.json
      sso import users realm.json --from keycloak --map map.json
    """
    if dry_run and document is not None:
        raise click.UsageError("--document changes nothing: leave out --dry-run")
    if services_id == application_id:
        raise click.UsageError(
            "--services: expected another application than that of the roles: its services could change the roles of "
            "every user"
        )
    from sso.cli.keycloak_realm.conversion import Destination, read_realm

    with open_text(file) as text:
        try:
            conversion = read_realm(text, Destination(application_id, services_id, project_id))
        except UnicodeDecodeError:
            raise CommandFailure(f"{text.name}: expected UTF-8") from None
    if document is not None:
        _write(document, conversion.document())
    else:
        report = with_records(ctx, lambda records: _apply(records, conversion, dry_run=dry_run))
        _print(report, conversion, dry_run=dry_run)
    if mapping is not None:
        _write(mapping, conversion.mapping)
    print_lines(conversion.notes.lines())


async def _apply(records: "ServiceRecords", conversion: "Conversion", *, dry_run: bool) -> Fields:
    application_id, project_id = conversion.destination.application_id, conversion.destination.project_id
    if project_id and project_id not in {project["id"] for project in await records.projects.list()}:
        raise unknown_project(project_id)
    applications = {item["application_id"] for item in await records.applications.list(None)}
    conversion.leave_out_existing(
        applications,
        {client["client_id"] for client in await records.clients.list()},
        set(await records.roles.list(application_id)) if application_id in applications else set(),
        {group["id"] for group in await records.groups.list(project_id)} if project_id else set(),
    )
    with Progress("importing the realm") as progress:
        return await records.state.apply(
            conversion.document(),
            lambda what, done, total: progress.show(f"{what}, {done:,} of {total:,}"),
            dry_run=dry_run,
            override=False,
        )


def _print(report: Fields, conversion: "Conversion", *, dry_run: bool) -> None:
    for warning in report["warnings"]:
        echo(f"warning: {warning}", err=True)
    if dry_run:
        print_lines(format_apply_report(report, {}))
    else:
        echo(f"created {conversion.counts()}")


def _write(file: Path, content: Fields) -> None:
    import orjson

    with private_file(file) as opened:
        opened.write(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
