"""The group that a command is about."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import click

from sso.cli.context import utf8_argument
from sso.cli.option_errors import option_errors
from sso.cli.records import with_records
from sso.cli.records.types import Fields

if TYPE_CHECKING:
    from sso.cli.records.service import ServiceRecords


GROUP = click.argument("group", callback=utf8_argument)
IN_PROJECT = click.option(
    "--project", callback=utf8_argument, help="Project of the group, if groups of several projects have this title."
)


def with_group(
    ctx: click.Context,
    name: str,
    project: str | None,
    options: Mapping[str, str],
    action: "Callable[[ServiceRecords, Fields], Awaitable[None]]",
) -> Fields:
    """Finds the group and changes it. Returns the group as it was found.

    ``options`` maps fields to options, see `option_errors`.
    """

    async def work(records: "ServiceRecords") -> Fields:
        group = await records.groups.find(name, project)
        await action(records, group)
        return group

    with option_errors(options, f"the project of group {name}"):
        return with_records(ctx, work)
