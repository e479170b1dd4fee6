"""The group that a command is about."""

from collections.abc import Awaitable, Callable, Mapping

import click

from sso.cli.administration import Fields, ServiceAdministration
from sso.cli.backend import with_administration
from sso.cli.context import utf8_argument
from sso.cli.option_errors import option_errors

GROUP = click.argument("group", callback=utf8_argument)
IN_PROJECT = click.option(
    "--project", callback=utf8_argument, help="Project of the group, if groups of several projects have this title."
)


def with_group(
    ctx: click.Context,
    name: str,
    project: str | None,
    options: Mapping[str, str],
    action: Callable[[ServiceAdministration, Fields], Awaitable[None]],
) -> Fields:
    """Finds the group and changes it. Returns the group as it was found.

    ``options`` maps fields to options, see `option_errors`.
    """

    async def work(admin: ServiceAdministration) -> Fields:
        group = await admin.groups.find(name, project)
        await action(admin, group)
        return group

    with option_errors(options, f"the project of group {name}"):
        return with_administration(ctx, work)
