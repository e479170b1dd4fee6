"""Finds the primary among several hosts: connects to all of them at once and takes the first that accepts writes.

A host that does not answer never delays the others. While one is still silent, hosts that have answered are tried
again: a standby may be promoted at any moment.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from sso.core.database_url import DatabaseHost
from sso.db.driver_errors import DRIVER_ERRORS, describe_failure
from sso.db.errors import Unreachable

HEAD_START_S = 0.25  # given to the last known primary
RETRY_S = 0.25

OpenHost = Callable[[DatabaseHost], Awaitable[Any]]


async def find_primary(
    hosts: Sequence[DatabaseHost], open_host: OpenHost, first: DatabaseHost | None, seconds: float
) -> tuple[DatabaseHost, Any]:
    """Returns the primary and a connection to it. Raises Unreachable when every host has failed, or after ``seconds``.

    ``open_host`` raises an error of the driver if the host is not the primary. ``first`` gets a head start. An error
    that no host can solve, such as an invalid parameter in the URL, is raised as it is.
    """
    race = _Race(hosts, open_host, first)
    tasks = [asyncio.create_task(race.run_host(host)) for host in hosts]
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await race.over.wait()
        return race.take_winner()
    finally:
        for task in tasks:
            task.cancel()
        race.close()


async def open_only_host(hosts: Sequence[DatabaseHost], attempt: Awaitable[Any]) -> Any:
    """Returns the connection that ``attempt`` opens to the only host, whether it is a primary or not."""
    try:
        return await attempt
    except Exception as error:
        if not _concerns_host(error):
            raise
        raise Unreachable(f"{hosts[0] if hosts else 'this machine'}: {describe_failure(error)}") from None


class _Race:
    def __init__(self, hosts: Sequence[DatabaseHost], open_host: OpenHost, first: DatabaseHost | None) -> None:
        self._open_host = open_host
        self._first = first
        self._failures: dict[DatabaseHost, Exception | None] = dict.fromkeys(hosts)
        self._others_may_start = asyncio.Event()
        self._winner: tuple[DatabaseHost, Any] | None = None
        self._is_closed = False
        self._error: Exception | None = None
        self.over = asyncio.Event()

    async def run_host(self, host: DatabaseHost) -> None:
        if self._first in self._failures and host != self._first:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._others_may_start.wait(), HEAD_START_S)
        while True:
            try:
                connection = await self._open_host(host)
            except Exception as error:
                self._record_failure(host, error)
            else:
                self._record_success(host, connection)
                return
            await asyncio.sleep(RETRY_S)

    def _record_failure(self, host: DatabaseHost, error: Exception) -> None:
        self._failures[host] = error
        self._others_may_start.set()
        if not _concerns_host(error):
            self._error = error
        if self._error or all(self._failures.values()):
            self.over.set()

    def _record_success(self, host: DatabaseHost, connection: Any) -> None:
        if self._winner or self._is_closed:
            connection.terminate()
        else:
            self._winner = host, connection
            self.over.set()

    def take_winner(self) -> tuple[DatabaseHost, Any]:
        winner, self._winner = self._winner, None
        if winner:
            return winner
        if self._error:
            raise self._error
        raise Unreachable(
            "; ".join(f"{host}: {describe_failure(error or TimeoutError())}" for host, error in self._failures.items())
        )

    def close(self) -> None:
        self._is_closed = True
        if self._winner:  # no caller waits for it any more
            self._winner[1].terminate()


def _concerns_host(error: Exception) -> bool:
    is_invalid_parameter = isinstance(error, ValueError) and not isinstance(error, OSError)
    return isinstance(error, DRIVER_ERRORS) and not is_invalid_parameter
