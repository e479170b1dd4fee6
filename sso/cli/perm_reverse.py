"""sso perm who and sso perm can"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from sso.cli.arguments import APP_OR_CENTRAL, USER
from sso.cli.context import utf8_argument
from sso.cli.option_errors import option_errors
from sso.cli.output import Format, list_options, print_list
from sso.cli.records import with_records
from sso.cli.records.types import Fields
from sso.cli.types import APPLICATION_ID, unix_time
from sso.perm.engine.explanation.text import explanation_lines

Command = TypeVar("Command", bound=Callable[..., Any])

AT = click.option(
    "--at",
    type=unix_time,
    metavar="TIME",
    help="Permissions at a past moment: Unix seconds, or a time such as 2026-01-31T18:00Z.",
)
_LIMIT = click.option(
    "--limit", type=click.IntRange(1, 1_000_000), default=1000, show_default=True, help="The greatest number of lines."
)
_REASONS = click.option("--reasons", "with_reasons", is_flag=True, help="Show where each rule comes from.")


@click.command("who")
@click.argument("rule", callback=utf8_argument)
@APP_OR_CENTRAL
@click.option(
    "--project",
    callback=utf8_argument,
    help="The project that the rule is about; or the application must belong to it.",
)
@AT
@_LIMIT
@_REASONS
@list_options
@click.pass_context
def who_command(
    ctx: click.Context,
    rule: str,
    app_id: int,
    project: str | None,
    at: int | None,
    limit: int,
    with_reasons: bool,
    form: Format | None,
) -> None:
    """List the users who have a rule: by roles, groups, conditions, default roles or their own data.

    RULE is written as in `sso perm list`. Conditions on the client's address count as not met.

    \b
    Example:
      sso perm who chat.mute --app 10
      sso perm who project.can_view_project --project red_dawn --reasons
    """

    with option_errors({"rule": "RULE", "project_id": "--project"}):
        options = {"project_id": project, "at": at, "reason": with_reasons}
        found = with_records(ctx, lambda records: records.permissions.holders(rule, app_id, limit, **options))
    _print(form, found, ("user_id",))


@click.command("can")
@USER
@click.option("--app", "app_id", type=APPLICATION_ID, help="Only at this application.")
@click.option("--rule", callback=utf8_argument, help="Only this rule: the applications where the user has it.")
@AT
@_LIMIT
@_REASONS
@list_options
@click.pass_context
def can_command(
    ctx: click.Context,
    user: str,
    app_id: int | None,
    rule: str | None,
    at: int | None,
    limit: int,
    with_reasons: bool,
    form: Format | None,
) -> None:
    """List what a user may do, at all applications or at one.

    \b
    Example:
      sso perm can ann@example.com
      sso perm can ann@example.com --rule chat.mute
    """

    with option_errors({"rule": "--rule"}):
        options = {"application_id": app_id, "rule": rule, "at": at, "reason": with_reasons}
        found = with_records(ctx, lambda records: records.permissions.rules(user, limit, **options))
    _print(form, found, ("application_id", "rule"))


def _print(form: Format | None, found: Sequence[Fields], names: Sequence[str]) -> None:
    print_list(form, found if form == "json" else [_row(record, names) for record in found])


def _row(record: Fields, names: Sequence[str]) -> Fields:
    ends = record["expires"]
    row = {name: record[name] for name in names} | {
        "params": record["params"],
        "expires": f"{datetime.fromtimestamp(ends, UTC):%Y-%m-%dT%H:%MZ}" if ends else "",
    }
    if "reason" in record:
        row["reasons"] = "; ".join(line.text for line in explanation_lines(record["reason"]))
    return row
