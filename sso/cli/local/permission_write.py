"""Runs a command's write of permissions."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

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
    """Runs ``work`` in one transaction. Raises AssertionFailed if an assertion would fail.

    Commands do not warn about rules that the schema does not declare, because they cannot declare rules.
    """
    from sso.perm.changes.writer import WriteMode

    mode = WriteMode(actor=services.actor)
    return (await services.permission_writer.write(mode, scope, work, *args, **kwargs)).result
