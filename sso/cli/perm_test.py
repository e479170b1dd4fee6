"""sso perm test"""

from pathlib import Path
from typing import Any

import click

from sso.cli.context import CommandFailure
from sso.cli.echo import echo, echo_json
from sso.cli.output import print_lines
from sso.cli.records import with_records
from sso.cli.types import APPLICATION_ID, unix_time


@click.command("test")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), required=False)
@click.option("--application-id", "--app", "app_id", type=APPLICATION_ID, help="Check this application only.")
@click.option(
    "--at",
    type=unix_time,
    metavar="TIME",
    help="Check FILE at this moment, for time windows and ends of roles (default: now).",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, file: Path | None, app_id: int | None, at: int | None, as_json: bool) -> None:
    """Check the assertions of all applications. The exit code is 1 if one fails.

    Every save of permissions checks them too, for the users whom it affects. This command also finds what no save
    causes: roles that have ended, users who were deleted, and what an override has passed.

    With FILE (or - for standard input), a document of desired state is checked without a database and a service, with
    the users, roles, groups and projects of the document alone. Errors begin with file, line and column.

    \b
    Example:
      sso perm test
      sso perm test --application-id 10 --json
      sso perm test state.json
    """
    if file is not None:
        report = _check_file(file, app_id, at)
    elif at is not None:
        raise click.UsageError("--at needs FILE")
    else:
        report = with_records(ctx, lambda records: records.permissions.test_assertions(app_id))
    failed = report["failed"]
    if as_json:
        echo_json(report, indent=True)
    else:
        for warning in report["warnings"]:
            echo(f"warning: {warning}", err=True)
        print_lines(f"{_place(item)}: {item['assertion']}: {item['reason']}" for item in failed)
        echo(_summary(report["checked"], len(failed)))
    if failed:
        ctx.exit(1)


def _summary(checked: int, failed: int) -> str:
    if checked == 1:
        return "1 assertion fails" if failed else "1 assertion holds"
    if not failed:
        return f"{checked} assertions hold" if checked else "there are no assertions"
    return f"{failed} of {checked} assertions {'fails' if failed == 1 else 'fail'}"


def _check_file(file: Path, app_id: int | None, at: int | None) -> dict[str, Any]:
    from sso.cli.document_file import read_document
    from sso.core.field_errors import FieldError
    from sso.db.clock import DatabaseClock
    from sso.state.offline import check_document
    from sso.state.position import find_position, located

    source = read_document(file)
    try:
        report = check_document(source.document, int(DatabaseClock().now()) if at is None else at, app_id)
    except FieldError as error:
        raise CommandFailure(located(source.name, source.text, error)) from None
    failed = []
    for location, item in report.failed:
        line, column = find_position(source.text, location)
        failed.append(item.json | {"file": source.name, "line": line, "column": column})
    return report.json | {"failed": failed}


def _place(item: dict[str, Any]) -> str:
    application = f"application {item['application_id']}"
    return f"{item['file']}:{item['line']}:{item['column']}: {application}" if "file" in item else application
