"""Opens connections to the primary, for all users of one process.

Concurrent calls share the knowledge where the primary is, and the search for it: after a failover, one connection is
opened by a race of all hosts, the others directly to the host that won.
"""

import asyncio
from contextlib import suppress
from typing import Any

import structlog

from sso.core.database_url import DatabaseHost, database_hosts
from sso.db.connection import open_prepared
from sso.db.driver_errors import DRIVER_ERRORS
from sso.db.errors import Unreachable
from sso.db.race import HEAD_START_S, find_primary, open_only_host
from sso.db.time_limits import USUAL, TimeLimits

MAX_ATTEMPTS = 3  # for one call: the primary may change or die meanwhile

log = structlog.get_logger()


class Connector:
    def __init__(self, dsn: str, limits: TimeLimits = USUAL) -> None:
        self._dsn = dsn
        self._limits = limits
        self._hosts = database_hosts(dsn)
        self._primary: DatabaseHost | None = None  # None: it must be searched for
        self._last_primary: DatabaseHost | None = None
        self._search: asyncio.Task[None] | None = None
        self._waiting = 0  # calls that wait for the search
        self._spare: list[Any] = []  # the connection that a search has opened, for one of these calls
        self._attempts: dict[asyncio.Task[Any], DatabaseHost] = {}
        self._open: dict[Any, DatabaseHost] = {}

    @property
    def has_several_hosts(self) -> bool:
        return len(self._hosts) > 1

    async def connect(self) -> Any:
        """Returns a new connection to the primary. Raises Unreachable."""
        if not self.has_several_hosts:
            return await open_only_host(self._hosts, open_prepared(self._dsn, None, self._limits))
        for _ in range(MAX_ATTEMPTS):
            if self._primary is None:
                await self._wait_for_search()
            connection = self._take_spare() or await self._try_primary()
            if connection is not None:
                return connection
        raise Unreachable("the primary changes or fails again and again")

    def search_again(self) -> None:
        """The primary did not answer or refused to write: the next connection begins with a search."""
        self._primary = None

    async def close(self) -> None:
        tasks = [*self._attempts, *([self._search] if self._search else [])]
        for task in tasks:
            task.cancel()
        for connection in self._spare:
            connection.terminate()
        if tasks:
            await asyncio.wait(tasks, timeout=1)

    async def _wait_for_search(self) -> None:
        search = self._start_search()
        self._waiting += 1
        try:
            await asyncio.wait([search])  # a caller that is cancelled does not cancel the search
        finally:
            self._waiting -= 1
        search.result()

    async def _try_primary(self) -> Any | None:
        """Returns a connection, None if the primary fails or another host turns out to be the primary."""
        host = self._primary
        if host is None:
            return None
        attempt = asyncio.create_task(self._open_host(host))
        self._attempts[attempt] = host
        # A search finds out whether there is another primary, if this one does not answer.
        search = asyncio.get_running_loop().call_later(HEAD_START_S, self._start_search)
        try:
            await asyncio.wait([attempt])
        except BaseException:
            _abandon(attempt)
            raise
        finally:
            search.cancel()
            del self._attempts[attempt]
        if attempt.cancelled():
            return None
        with suppress(*DRIVER_ERRORS):
            return attempt.result()
        if self._primary == host:
            self.search_again()
        return None

    async def _open_host(self, host: DatabaseHost) -> Any:
        connection = await open_prepared(self._dsn, host, self._limits)
        self._open[connection] = host
        connection.add_termination_listener(lambda closed: self._open.pop(closed, None))
        return connection

    def _take_spare(self) -> Any | None:
        while self._spare:
            connection = self._spare.pop()
            if not connection.is_closed():
                return connection
        return None

    def _start_search(self) -> "asyncio.Task[None]":
        if self._search is None or self._search.done():
            self._search = asyncio.create_task(self._search_primary())
            self._search.add_done_callback(_retrieve_error)
        return self._search

    async def _search_primary(self) -> None:
        host, connection = await find_primary(self._hosts, self._open_host, self._last_primary, self._limits.connect_s)
        if self._waiting:
            self._spare.append(connection)
        else:
            connection.terminate()
        previous, self._primary, self._last_primary = self._last_primary, host, host
        if previous not in (None, host):
            log.warning("database.primary_changed", host=str(host), previous=str(previous))
            self._leave_other_hosts(host)

    def _leave_other_hosts(self, primary: DatabaseHost) -> None:
        """Ends everything that still goes to another host, such as a previous primary that does not answer."""
        for attempt, host in self._attempts.items():
            if host != primary:
                attempt.cancel()
        for connection, host in list(self._open.items()):
            if host != primary:
                connection.terminate()


def _abandon(attempt: "asyncio.Task[Any]") -> None:
    attempt.cancel()
    attempt.add_done_callback(_close_result)


def _close_result(attempt: "asyncio.Task[Any]") -> None:
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().terminate()


def _retrieve_error(task: "asyncio.Task[None]") -> None:
    """Prevents asyncio's warning about an error that no task has waited for."""
    if not task.cancelled():
        task.exception()
