"""sso perm test"""

from typing import TYPE_CHECKING

import click

from sso.cli.context import CommandFailure, with_services
from sso.cli.output import print_json, print_lines
from sso.cli.services import CommandServices
from sso.cli.types import APPLICATION_ID

if TYPE_CHECKING:
    from sso.db.transaction import Transaction
    from sso.perm.changes.impact import FailedAssertion


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

    async def work(services: CommandServices) -> "tuple[int, list[FailedAssertion], list[str]]":
        now = await services.database_time()
        return await services.database.long_transaction(600, _check, services, app_id, now)

    checked, failed, warnings = with_services(ctx, work)
    if as_json:
        print_json({"checked": checked, "failed": [item.json for item in failed], "warnings": warnings})
    else:
        for warning in warnings:
            click.echo(f"warning: {warning}", err=True)
        print_lines(f"application {item.application_id}: {item.statement}: {item.reason}" for item in failed)
        click.echo(f"{checked} assertions, {len(failed)} of them fail")
    if failed:
        ctx.exit(1)


async def _check(
    tx: "Transaction", services: CommandServices, app_id: int | None, now: int
) -> "tuple[int, list[FailedAssertion], list[str]]":
    from sso.perm.changes.assertion_check import check_application
    from sso.perm.stores.applications import read_application_row
    from sso.perm.stores.assertions import read_all_assertions

    if app_id is not None and await read_application_row(tx, app_id) is None:
        raise CommandFailure(f"there is no application {app_id}; `sso app list` shows them")
    failed: list[FailedAssertion] = []
    warnings: list[str] = []
    assertions = await read_all_assertions(tx, app_id)
    for application_id, statements in assertions.items():
        more, more_warnings = await check_application(tx, services.facts, application_id, statements, now)
        failed += more
        warnings += [f"application {application_id}: {warning}" for warning in more_warnings]
    return sum(map(len, assertions.values())), failed, warnings
