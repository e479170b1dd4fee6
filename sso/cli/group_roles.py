"""sso group role …"""

from typing import TYPE_CHECKING, Any

import click

from sso.cli.arguments import ROLE
from sso.cli.command_groups import Subcommands
from sso.cli.context import CommandFailure
from sso.cli.echo import echo
from sso.cli.group_lookup import GROUP, IN_PROJECT, with_group
from sso.cli.records.types import Fields
from sso.cli.types import APPLICATION_ID

if TYPE_CHECKING:
    from sso.cli.records.service import ServiceRecords


APP = click.option(
    "--app", "app_id", type=APPLICATION_ID, required=True, help="Application of the role, in the project of the group."
)
OPTIONS = {r"settings\.services\.\d+\.groups\[\d+\]\.role": "ROLE", r"settings\.services\.\d+": "--app"}


@click.group(cls=Subcommands)
def role() -> None:
    """Give roles of applications to the members of a group. `sso group show` shows them.

    \b
    Example:
      sso group role add Testers moderator --app 10
    """


@role.command()
@GROUP
@ROLE
@APP
@click.option(
    "--action",
    type=click.Choice(("grant", "revoke")),
    default="grant",
    show_default=True,
    help="Give the role, or take it away from members who have it for another reason.",
)
@IN_PROJECT
@click.pass_context
def add(ctx: click.Context, group: str, role: str, app_id: int, action: str, project: str | None) -> None:
    """Grant a role of an application to the members of a group, or revoke it.

    The application belongs to the project of the group. A protected role cannot be granted, a default role cannot be
    revoked. To end a grant, use `sso group role delete`: --action revoke takes the role away from all members,
    wherever they have it from.

    \b
    Example:
      sso group role add Testers moderator --app 10
      sso group role add Banned moderator --app 10 --action revoke
    """
    row = with_group(ctx, group, project, OPTIONS, lambda records, row: _save(records, row, app_id, role, action))
    now_has = "gives" if action == "grant" else "takes away"
    echo(f"group {row['title']} {now_has} the role {role} at application {app_id}")


@role.command()
@GROUP
@ROLE
@APP
@IN_PROJECT
@click.pass_context
def delete(ctx: click.Context, group: str, role: str, app_id: int, project: str | None) -> None:
    """End the grant or the revoke of a role of an application for the members of a group.

    \b
    Example:
      sso group role delete Testers moderator --app 10
    """
    row = with_group(ctx, group, project, OPTIONS, lambda records, row: _save(records, row, app_id, role, None))
    echo(f"group {row['title']} no longer gives or takes away the role {role} at application {app_id}")


async def _save(records: "ServiceRecords", group: Fields, app_id: int, role: str, action: str | None) -> None:
    """Replaces the action of the group's project for this group and role; None removes it."""
    await records.applications.require(app_id)
    if action is not None:
        await records.roles.require(app_id, role)
    await records.projects.change(
        group["project_id"], lambda home: _changed_services(home, group, app_id, role, action), [app_id]
    )


def _changed_services(home: Fields, group: Fields, app_id: int, role: str, action: str | None) -> Fields:
    from sso.perm.input.project import read_project_fields

    services: dict[str, Any] = dict(home["settings"].get("services", {}))
    actions = services.get(str(app_id), {"groups": []})["groups"]
    kept = [item for item in actions if (item["group_id"], item["role"]) != (group["id"], role)]
    if action is None and kept == actions:
        raise CommandFailure(
            f"ROLE: the group {group['title']} neither gives nor takes away the role {role} at application {app_id}"
        )
    if action is not None:
        kept.append({"group_id": group["id"], "role": role, "action": action})
    services[str(app_id)] = {"groups": kept}
    return read_project_fields(home["id"], {"settings": {"services": services}})[0]
