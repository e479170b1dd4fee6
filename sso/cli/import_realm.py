"""sso import realm"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sso.cli.context import CommandFailure
from sso.cli.echo import echo
from sso.cli.impact_format import format_apply_report
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
@click.option("--dry-run", is_flag=True, help="Change nothing, and show what would be done.")
@click.option(
    "--document",
    type=click.Path(path_type=Path),
    help="Write a document for `sso apply` there, with the secrets of clients, and change nothing.",
)
@click.option(
    "--map", "mapping", type=click.Path(path_type=Path), help="Write a mapping for `sso import users --map` there."
)
@click.pass_context
def realm(
    ctx: click.Context, file: Path, application_id: int, dry_run: bool, document: Path | None, mapping: Path | None
) -> None:
    """Import the clients and roles of a realm that Keycloak has exported to FILE (or - for standard input).

    Clients and roles that exist stay as they are. The command names everything that is left out. Users are imported
    afterwards with `sso import users`, which gives them their roles with the mapping that this command writes.

    \b
    Example:
      sso import realm realm.json --application-id 10 --dry-run
      sso import realm realm.json --application-id 10 --map map.json
      sso import users realm.json --from keycloak --map map.json
    """
    from sso.cli.keycloak_realm.conversion import read_realm

    with open_text(file) as text:
        try:
            conversion = read_realm(text, application_id)
        except UnicodeDecodeError:
            raise CommandFailure(f"{text.name}: expected UTF-8") from None
    if document is not None:
        _write(document, conversion.document())
    else:
        report = with_records(ctx, lambda records: _apply(records, conversion, dry_run=dry_run), may_create=True)
        _print(report, dry_run=dry_run)
    if mapping is not None:
        _write(mapping, conversion.mapping)
    for note in conversion.notes:
        echo(note)


async def _apply(records: "ServiceRecords", conversion: "Conversion", *, dry_run: bool) -> Fields:
    applications = {item["application_id"] for item in await records.applications.list(None)}
    exists = conversion.application_id in applications
    roles = set(await records.roles.list(conversion.application_id)) if exists else set()
    conversion.leave_out_existing({client["client_id"] for client in await records.clients.list()}, roles)
    with Progress("importing the realm") as progress:
        return await records.state.apply(
            conversion.document(with_application=not exists),
            lambda what, done, total: progress.show(f"{what}, {done:,} of {total:,}"),
            dry_run=dry_run,
            override=False,
        )


def _print(report: Fields, *, dry_run: bool) -> None:
    for warning in report["warnings"]:
        echo(f"warning: {warning}", err=True)
    if dry_run:
        print_lines(format_apply_report(report, {}))
    else:
        echo(f"created {report['created']}")


def _write(file: Path, content: Fields) -> None:
    import orjson

    with private_file(file) as opened:
        opened.write(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
