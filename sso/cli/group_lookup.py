"""The group that a command is about."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import click

from sso.cli.context import utf8_argument, with_services
from sso.cli.lookups import require_group
from sso.cli.option_errors import option_errors
from sso.cli.permission_write import write_permissions
from sso.cli.services import CommandServices
from sso.perm.changes.scope import Scope

if TYPE_CHECKING:
    from sso.db.transaction import Row, Transaction
    from sso.perm.stores.audit import AuditActor

    GroupChange = Callable[[Transaction, AuditActor, Row], Awaitable[None]]

GROUP = click.argument("group", callback=utf8_argument)
IN_PROJECT = click.option(
    "--project", callback=utf8_argument, help="Project of the group, if groups of several projects have this title."
)


def change_group(
    ctx: click.Context, group: str, project: str | None, options: Mapping[str, str], save: "GroupChange"
) -> "Row":
    """Finds the group, and changes it in one transaction. Returns the group as it was found.

    ``options`` maps fields to options, see `option_errors`.
    """

    async def work(services: CommandServices) -> "Row":
        row = await require_group(services.database, group, project)
        await write_permissions(services, Scope.project(row["project_id"]), save, services.actor, row)
        return row

    with option_errors(options, f"the project of group {group}"):
        return with_services(ctx, work)
