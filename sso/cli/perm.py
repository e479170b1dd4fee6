"""sso perm …"""

from collections.abc import Iterator
from typing import Any

import click

from sso.cli.arguments import APP_OR_CENTRAL, USER
from sso.cli.command_groups import Subcommands
from sso.cli.context import utf8_argument
from sso.cli.echo import echo_json
from sso.cli.option_errors import option_errors
from sso.cli.output import Format, print_lines
from sso.cli.perm_reverse import AT, can_command, who_command
from sso.cli.perm_test import command as test_command
from sso.cli.records import with_records
from sso.perm.engine.explanation.text import end_text, explanation_lines, params_text
from sso.perm.engine.reserved_names import LIST_TYPES


@click.group(cls=Subcommands)
def command() -> None:
    """Show and explain permissions of a user, and check assertions. USER is a user id or a login.

    The central application, 1, holds the permissions for the whole service and for projects. Permissions come from
    roles: see `sso role`, `sso group` and `sso project member`.

    \b
    Example:
      sso perm list ann@example.com --app 10
      sso perm explain ann@example.com chat.mute --app 10
      sso perm who chat.mute --app 10
    """


@command.command("list")
@USER
@APP_OR_CENTRAL
@AT
@click.option(
    "--type", "kind", type=click.Choice(LIST_TYPES), default="list_short", show_default=True, help="Output format."
)
@click.option("--json", "form", flag_value="json", help="Print one JSON document.")
@click.option("--tsv", "form", flag_value="tsv", help="Print one rule or role per line (default).")
@click.pass_context
def list_permissions(
    ctx: click.Context, user: str, app_id: int, at: int | None, kind: str, form: Format | None
) -> None:
    """List the permissions of a user at an application: one rule or role per line, or the tree as JSON.

    Conditions on the client's address count as not met, because there is no request.

    \b
    Example:
      sso perm list ann@example.com --app 10
      sso perm list ann@example.com --at 2026-01-31T18:00Z
    """

    if form == "tsv" and kind == "tree":
        raise click.UsageError("--type tree is one JSON document: --tsv needs another type")

    with option_errors({}):
        shown = with_records(ctx, lambda records: records.permissions.render(user, app_id, kind, at))
    if kind == "tree" or form == "json":
        echo_json(shown, indent=True)
    else:
        print_lines(shown)


@command.command()
@USER
@click.argument("rule", callback=utf8_argument)
@APP_OR_CENTRAL
@AT
@click.option("--json", "as_json", is_flag=True, help="Print the complete explanation as JSON.")
@click.pass_context
def explain(ctx: click.Context, user: str, rule: str, app_id: int, at: int | None, as_json: bool) -> None:
    """Explain why a user has a rule, or the most likely reasons why not.

    RULE is written as in `sso perm list`: can_create_projects, private_data.chat.mute,
    red_dawn/project.can_view_project.

    \b
    Example:
      sso perm explain ann@example.com can_create_projects
      sso perm explain ann@example.com chat.mute --app 10 --at 2026-01-31T18:00Z
    """

    with option_errors({"explain": "RULE"}):
        login, explanation = with_records(ctx, lambda records: records.permissions.explain(user, rule, app_id, at))
    if as_json:
        echo_json(explanation, indent=True)
    else:
        print_lines(_format_explanation(login, app_id, explanation))


def _format_explanation(login: str, app_id: int, explanation: dict[str, Any]) -> Iterator[str]:
    if explanation["held"]:
        yield f"{login} has {explanation['rule']}{params_text(explanation)}{end_text(explanation)}:"
    else:
        yield f"{login} does not have {explanation['rule']} at application {app_id}:"
    for line in explanation_lines(explanation):
        yield f"{'  ' * (line.level + 1)}{line.text}"


command.add_command(who_command)
command.add_command(can_command)
command.add_command(test_command)
