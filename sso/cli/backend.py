"""Chooses where a command acts: on the server that ``--server`` names, or on the database of this machine."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from sso.cli.administration import ServiceAdministration
from sso.cli.context import with_services
from sso.cli.server_choice import chosen_server

T = TypeVar("T")


def with_administration(
    ctx: click.Context,
    work: Callable[[ServiceAdministration], Awaitable[T]],
    *,
    with_permissions: bool = True,
    may_create: bool = False,
) -> T:
    """Runs ``work`` on the chosen server, or with the database of this machine, and returns its result."""
    if server := chosen_server(ctx):
        from sso.cli.remote.administration import with_remote_administration

        return with_remote_administration(server, work)
    from sso.cli.local.administration import LocalAdministration

    return with_services(
        ctx,
        lambda services: work(LocalAdministration(services)),
        with_permissions=with_permissions,
        may_create=may_create,
    )
