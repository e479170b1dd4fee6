"""Connections to PostgreSQL, on the asyncio side. The Database limits how many are in use."""

from typing import Any

from sso.db.connector import Connector
from sso.db.driver_errors import DRIVER_ERRORS


class ConnectionPool:
    """Keeps idle connections for reuse, the last used first."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._idle: list[Any] = []
        self._is_closed = False

    def take_idle(self) -> Any | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return None

    async def open_connection(self) -> Any:
        return await self._connector.connect()

    def give_back(self, connection: Any) -> None:
        if connection.is_closed():
            return
        if self._is_closed or connection.is_in_transaction():
            connection.terminate()
        else:
            self._idle.append(connection)

    def reject(self, connection: Any) -> None:
        """Closes a connection whose server refused to write, and with it all idle ones: the primary is elsewhere."""
        connection.terminate()
        self.drop_idle()

    def drop_idle(self) -> None:
        """Closes the idle connections, because their server is not usable. New ones begin with a search for another."""
        self._connector.search_again()
        while self._idle:
            self._idle.pop().terminate()

    async def close(self) -> None:
        """Closes the idle connections; those in use are closed when they are given back."""
        self._is_closed = True
        await self._connector.close()
        while self._idle:
            connection = self._idle.pop()
            try:
                await connection.close(timeout=1)
            except DRIVER_ERRORS:
                connection.terminate()
