"""sso group role …"""

from typing import TYPE_CHECKING, Any

import click

from sso.cli.arguments import ROLE
from sso.cli.context import CommandFailure
from sso.cli.group_lookup import GROUP, IN_PROJECT, change_group
from sso.cli.groups import Subcommands
from sso.cli.lookups import require_application, require_role
from sso.cli.types import APPLICATION_ID

if TYPE_CHECKING:
    from sso.db.transaction import Row, Transaction
    from sso.perm.stores.audit import AuditActor

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
    revoked. To end a grant, use `sso group role remove`: --action revoke takes the role away from all members,
    wherever they have it from.

    \b
    Example:
      sso group role add Testers moderator --app 10
      sso group role add Banned moderator --app 10 --action revoke
    """

    async def save(tx: "Transaction", actor: "AuditActor", row: "Row") -> None:
        await _save(tx, actor, row, app_id, role, action)

    row = change_group(ctx, group, project, OPTIONS, save)
    now_has = "gives" if action == "grant" else "takes away"
    click.echo(f"group {row['title']} {now_has} the role {role} at application {app_id}")


@role.command()
@GROUP
@ROLE
@APP
@IN_PROJECT
@click.pass_context
def remove(ctx: click.Context, group: str, role: str, app_id: int, project: str | None) -> None:
    """End the grant or the revoke of a role of an application for the members of a group.

    \b
    Example:
      sso group role remove Testers moderator --app 10
    """

    async def save(tx: "Transaction", actor: "AuditActor", row: "Row") -> None:
        await _save(tx, actor, row, app_id, role, None)

    row = change_group(ctx, group, project, OPTIONS, save)
    click.echo(f"group {row['title']} no longer gives or takes away the role {role} at application {app_id}")


async def _save(
    tx: "Transaction", actor: "AuditActor", group: "Row", app_id: int, role: str, action: str | None
) -> None:
    """Replaces the action of the group's project for this group and role; None removes it."""
    from sso.perm.input.project import read_project_fields
    from sso.perm.stores.administrators import keep_administrator
    from sso.perm.stores.projects import read_project, referenced_applications, save_project
    from sso.perm.stores.roles import read_roles

    project_id: str = group["project_id"]
    unlocked = await read_project(tx, project_id)
    assert unlocked is not None
    # Applications are locked before the project.
    named = {app_id, *referenced_applications({"settings": unlocked["settings"]})}
    async with keep_administrator(tx, project_id, named):
        project = await read_project(tx, project_id)
        assert project is not None
        await require_application(tx, app_id)
        services: dict[str, Any] = dict(project["settings"].get("services", {}))
        actions = services.get(str(app_id), {"groups": []})["groups"]
        kept = [item for item in actions if (item["group_id"], item["role"]) != (group["id"], role)]
        if action is None and kept == actions:
            raise CommandFailure(
                f"ROLE: the group {group['title']} neither gives nor takes away the role {role} at application {app_id}"
            )
        if action is not None:
            require_role(await read_roles(tx, app_id), role, app_id)
            kept.append({"group_id": group["id"], "role": role, "action": action})
        services[str(app_id)] = {"groups": kept}
        changes, _ = read_project_fields(project_id, {"settings": {"services": services}})
        await save_project(tx, actor, project_id, changes)
