"""Services that stay open in a thread of the tests: opening them for each document takes longer than applying it."""

import threading
from collections.abc import Awaitable, Callable
from queue import SimpleQueue
from typing import Any, TypeVar

import trio

from sso.audit.trail import AuditActor
from sso.config import Settings
from sso.db.transaction import Transaction
from sso.services import Services, open_services
from sso.state.apply import Applier
from sso.state.document import parse

T = TypeVar("T")


class OpenServices:
    def __init__(self, settings: Settings, database_url: str) -> None:
        self._settings = settings
        self._database_url = database_url
        self._opened: SimpleQueue[tuple[trio.lowlevel.TrioToken, Services] | BaseException] = SimpleQueue()
        self._closing = trio.Event()
        self._thread = threading.Thread(target=self._run, name="open services", daemon=True)
        self._thread.start()
        opened = self._opened.get()
        if isinstance(opened, BaseException):
            raise opened
        self._token, self._services = opened

    def run(self, function: Callable[[Services], Awaitable[T]]) -> T:
        return trio.from_thread.run(function, self._services, trio_token=self._token)

    def close(self) -> None:
        trio.from_thread.run_sync(self._closing.set, trio_token=self._token)
        self._thread.join()

    def _run(self) -> None:
        try:
            trio.run(self._stay_open)
        except BaseException as error:
            self._opened.put(error)

    async def _stay_open(self) -> None:
        async with open_services(self._settings, self._database_url) as services:
            self._opened.put((trio.lowlevel.current_trio_token(), services))
            await self._closing.wait()


async def apply_document(services: Services, document: dict[str, Any]) -> None:
    await Applier(services.database, services.hasher, services.operations).apply(parse(document))


async def save_accounts(services: Services, document: dict[str, Any]) -> None:
    """Saves the users and clients of a document, without a look at the permissions of users before and after it.

    That takes a third of the time, and is enough for accounts that a test begins with.
    """
    accounts = parse(document)
    hashes = {user.login: await services.hasher.hash(user.password) for user in accounts.users if user.password}

    async def save(tx: Transaction) -> None:
        for user in accounts.users:
            await services.operations.users.save(tx, AuditActor(), user, hashes.get(user.login))
        for client in accounts.clients:
            await services.operations.clients.save(tx, AuditActor(), client)

    await services.database.transaction(save)


async def run_once(settings: Settings, database_url: str, function: Callable[[Services], Awaitable[T]]) -> T:
    async with open_services(settings, database_url) as services:
        return await function(services)
