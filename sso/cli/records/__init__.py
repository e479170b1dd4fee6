"""The records of the service, for commands: users, clients, permissions and so on, through the management API.

A command is written once. The API is that of the server that ``--server`` names, of the service that runs with the data
directory of this machine, or of services that the command builds itself. Imports are inside of the function because
``--help`` and completion need none of them.
"""

import importlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from sso.cli.context import LocalServices, command_line_account, run_with_services, settings_of
from sso.cli.server_choice import chosen_server

if TYPE_CHECKING:
    from sso.cli.records.service import ServiceRecords
    from sso.core.operator_call import Respond

T = TypeVar("T")


def with_records(
    ctx: click.Context,
    work: "Callable[[ServiceRecords], Awaitable[T]]",
    *,
    may_create: bool = False,
    in_process: bool = False,
) -> T:
    """Runs ``work`` and returns its result.

    ``may_create`` is for commands that create a missing data directory. ``in_process`` is for work that would keep a
    worker of the service from its requests.
    """
    from sso.cli.records.service import ServiceRecords

    if server := chosen_server(ctx):
        from sso.cli.records.server import with_server

        return with_server(server, lambda api: work(ServiceRecords(api)))
    from sso.cli.records.operator_client import OperatorClient, local_failures
    from sso.cli.records.running_service import find_service_socket

    settings = settings_of(ctx, may_create=may_create)
    account = command_line_account()

    def answer(respond: "Respond") -> Awaitable[T]:
        return work(ServiceRecords(OperatorClient(respond, account)))

    async def answer_in_process(local: LocalServices) -> T:
        from sso.cli.records.in_process import run_in_process

        return await run_in_process(local, answer)

    with local_failures():
        if not in_process and (service := find_service_socket(settings.data_dir)):
            return service.run(answer)
        return run_with_services(settings, answer_in_process, may_create=may_create, meanwhile=_import_services)


def _import_services() -> None:
    importlib.import_module("sso.cli.records.in_process")
