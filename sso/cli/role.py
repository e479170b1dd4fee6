"""sso role …"""

from collections.abc import Mapping
from typing import Any

import click

from sso.cli.arguments import APP_OR_CENTRAL, DESCRIPTION
from sso.cli.command_groups import Subcommands
from sso.cli.confirmation import confirm, yes_option
from sso.cli.context import CommandFailure, utf8_argument
from sso.cli.echo import echo
from sso.cli.lookups import require_role
from sso.cli.option_errors import option_errors
from sso.cli.output import Format, list_options, print_list, print_record, record_options
from sso.cli.records import with_records
from sso.cli.records.types import Fields, RoleChange
from sso.cli.role_assignment import assign, unassign
from sso.cli.role_format import listed_role, shown_role
from sso.cli.types import APPLICATION_ID
from sso.perm.engine.records import RoleRecord
from sso.perm.input.condition_notation import parse_condition

ROLE = click.argument("name", metavar="ROLE", callback=utf8_argument)
APP = click.option(
    "--app", "app_id", type=APPLICATION_ID, required=True, help="Application that the role belongs to (`sso app list`)."
)
RULE = click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="RULE",
    callback=utf8_argument,
    help="Rule to add, such as chat.mute; may be given several times.",
)
PARAMS = click.option("--params", callback=utf8_argument, help="Comma-separated parameters, appended to each rule.")
CONDITION = click.option(
    "--condition",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    callback=utf8_argument,
    help="The role applies only while this is met, such as domain=studio.example; several must all be met.",
)
LIMIT = click.option(
    "--user-limit", metavar="N", type=click.IntRange(0), help="Maximum number of users; 0 is no limit."
)
OPTIONS = {
    "name": "ROLE",
    "meta": "--rule",
    "description": "--description",
    "params": "--params",
    "condition": "--condition",
    "user_limit": "--user-limit",
}


@click.group(cls=Subcommands)
def command() -> None:
    """Manage roles and assign them to users.

    A role is a set of rules of one application. The roles of the central application, 1, hold permissions in projects
    and for the whole service; `sso project member add` gives them to users of a project.

    \b
    Example:
      sso role add moderator --app 10 --rule chat.mute
      sso role assign ann@example.com moderator --app 10
    """


command.add_command(assign)
command.add_command(unassign)


@command.command("list")
@APP_OR_CENTRAL
@list_options
@click.pass_context
def list_roles(ctx: click.Context, app_id: int, form: Format | None) -> None:
    """List the roles of an application: name, number of rules, flags and description.

    \b
    Example:
      sso role list --app 10
    """
    roles = with_records(ctx, lambda records: records.roles.list(app_id))
    print_list(form, [listed_role(roles[name]) for name in sorted(roles)])


@command.command()
@ROLE
@APP_OR_CENTRAL
@record_options
@click.pass_context
def show(ctx: click.Context, name: str, app_id: int, form: Format | None) -> None:
    """Show a role with its rules.

    \b
    Example:
      sso role show moderator --app 10
    """
    roles = with_records(ctx, lambda records: records.roles.list(app_id))
    print_record(form, shown_role(app_id, require_role(roles, name, app_id)))


@command.command()
@ROLE
@APP
@RULE
@DESCRIPTION
@PARAMS
@CONDITION
@click.option("--protected", is_flag=True, help="The role may have protected rules, and projects cannot give it.")
@click.option("--default", is_flag=True, help="All users have the role.")
@LIMIT
@click.pass_context
def add(ctx: click.Context, /, name: str, app_id: int, rules: tuple[str, ...], **fields: Any) -> None:
    """Add a role to an application.

    RULE is written as in `sso perm list`: chat.mute, "chat.mute|eu" with the parameter eu, public_data.title=Major with
    another value than true. CONDITION is MEMBER=VALUE (domain, uid, tag, ip, purchase, everyone) or a JSON object.

    \b
    Example:
      sso role add moderator --app 10 --rule chat.mute --rule chat.kick
      sso role add staff --app 10 --rule srv.restart --condition domain=studio.example
    """
    changes = _changes(fields)

    def new(roles: Mapping[str, RoleRecord]) -> Fields:
        if name in roles:
            raise CommandFailure(f"application {app_id} has a role {name} already; `sso role change` changes it")
        return {**changes, "meta": _edited_rules({}, rules, ())}

    _change(ctx, app_id, name, new)
    echo(f"role {name} of application {app_id} is added")


@command.command()
@ROLE
@APP
@RULE
@click.option(
    "--remove-rule",
    "removed_rules",
    multiple=True,
    metavar="RULE",
    callback=utf8_argument,
    help="Rule to remove; may be given several times.",
)
@DESCRIPTION
@PARAMS
@CONDITION
@click.option("--no-condition", is_flag=True, help="Remove the condition.")
@click.option("--protected/--regular", default=None, help="Whether the role may have protected rules.")
@click.option("--default/--no-default", default=None, help="Whether all users have the role.")
@LIMIT
@click.pass_context
def change(
    ctx: click.Context,
    /,
    name: str,
    app_id: int,
    rules: tuple[str, ...],
    removed_rules: tuple[str, ...],
    no_condition: bool,
    **fields: Any,
) -> None:
    """Change a role. Rules and fields that no option names stay; --condition replaces the whole condition.

    RULE and CONDITION are written as in `sso role add`. Projects cannot give a protected role: --protected removes it
    from groups and members of projects.

    \b
    Example:
      sso role change moderator --app 10 --rule chat.ban --remove-rule chat.kick --user-limit 5
    """
    changes = _changes(fields) | ({"condition": {}} if no_condition else {})
    if not (changes or rules or removed_rules):
        raise click.UsageError("expected at least one option that changes the role")

    def changed(roles: Mapping[str, RoleRecord]) -> Fields:
        role = require_role(roles, name, app_id)
        return {**changes, "meta": _edited_rules(role.meta, rules, removed_rules)}

    if _change(ctx, app_id, name, changed):
        echo(f"role {name} of application {app_id} is changed")
    else:
        echo(f"role {name} of application {app_id} is as before")


@command.command()
@ROLE
@APP
@yes_option
@click.pass_context
def delete(ctx: click.Context, name: str, app_id: int, yes: bool) -> None:
    """Delete a role. All users and groups lose it.

    \b
    Example:
      sso role delete moderator --app 10 --yes
    """
    confirm(f"Delete the role {name} of application {app_id}? All users and groups lose it.", yes)

    def deleted(roles: Mapping[str, RoleRecord]) -> None:
        require_role(roles, name, app_id)

    _change(ctx, app_id, name, deleted)
    echo(f"role {name} of application {app_id} is deleted")


def _change(ctx: click.Context, app_id: int, name: str, change_role: RoleChange) -> bool:
    """Saves or deletes a role. Returns False if nothing has changed."""
    with option_errors(OPTIONS, f"application {app_id}, or its project,"):
        return with_records(ctx, lambda records: records.roles.change(app_id, name, change_role))


def _edited_rules(meta: Mapping[str, Any], added: tuple[str, ...], removed: tuple[str, ...]) -> dict[str, Any]:
    from sso.perm.input.rule_notation import add_rules, remove_rules

    option = "--remove-rule"
    try:
        left = remove_rules(meta, removed)
        option = "--rule"
        return add_rules(left, added)
    except ValueError as error:
        raise CommandFailure(f"{option}: {error}") from None


def _changes(fields: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of the role record that options set."""
    conditions = fields.pop("conditions")
    changes = {name: value for name, value in fields.items() if value is not None}
    return changes | ({"condition": parse_condition(conditions, ("--condition",))} if conditions else {})
