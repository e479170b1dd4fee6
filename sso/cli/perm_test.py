"""sso perm test"""

import click

from sso.cli.echo import echo, echo_json
from sso.cli.output import print_lines
from sso.cli.records import with_records
from sso.cli.types import APPLICATION_ID


@click.command("test")
@click.option("--application-id", "--app", "app_id", type=APPLICATION_ID, help="Check this application only.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, app_id: int | None, as_json: bool) -> None:
    """Check the assertions of all applications. The exit code is 1 if one fails.

    Every save of permissions checks them too, for the users whom it affects. This command also finds what no save
    causes: roles that have ended, users who were deleted, and what an override has passed.

    \b
    Example:
      sso perm test
      sso perm test --application-id 10 --json
    """

    report = with_records(ctx, lambda records: records.permissions.test_assertions(app_id))
    failed = report["failed"]
    if as_json:
        echo_json(report, indent=True)
    else:
        for warning in report["warnings"]:
            echo(f"warning: {warning}", err=True)
        print_lines(f"application {item['application_id']}: {item['assertion']}: {item['reason']}" for item in failed)
        echo(f"{report['checked']} assertions, {len(failed)} of them fail")
    if failed:
        ctx.exit(1)
