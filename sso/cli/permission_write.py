"""Runs a command's write of permissions."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import click

from sso.cli.services import CommandServices

if TYPE_CHECKING:
    from sso.db.transaction import Transaction
    from sso.perm.changes.scope import Scope

P = ParamSpec("P")
T = TypeVar("T")


async def write_permissions(
    services: CommandServices,
    scope: "Scope",
    work: "Callable[Concatenate[Transaction, P], Awaitable[T]]",
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Runs ``work`` in one transaction, and prints warnings. Raises AssertionFailed if an assertion would fail."""
    from sso.perm.changes.writer import WriteMode

    written = await services.permission_writer.write(WriteMode(actor=services.actor), scope, work, *args, **kwargs)
    for warning in written.warnings:
        click.echo(f"warning: {warning}", err=True)
    return written.result
