"""The thread that sends the requests of a replica, so that they can be ended at any moment.

A thread that waits for a socket cannot be interrupted: another thread that closes the socket does not wake it, and the
number of the socket may belong to something else by then. So one thread sends the requests of all others with Trio,
which can cancel them while they resolve a name, connect, or wait for a response.
"""

import os
import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakSet

import httpx
import trio

from sso.client.call import ApiCall
from sso.client.clients import AsyncSsoClient
from sso.client.credentials import Credentials
from sso.client.errors import ConnectionFailed

T = TypeVar("T")


class RequestThread:
    def __init__(self) -> None:
        self._clients: list[AsyncSsoClient] = []
        self._sockets: WeakSet[trio.socket.SocketType] = WeakSet()
        self._token: trio.lowlevel.TrioToken | None = None  # of the thread, as soon as it runs
        self._is_running = threading.Event()  # also set if it cannot run
        self._failure: BaseException | None = None  # why it cannot run
        self._process_id: int | None = None  # of the process that started it
        self._requests: trio.Nursery
        self._thread = threading.Thread(target=self._run_loop, name="replica requests", daemon=True)

    def open_client(self, url: str, credentials: Credentials, **options: Any) -> AsyncSsoClient:
        """Returns a client for `send`, which is closed with the thread."""
        options = {"event_hooks": {"request": [self._trace]}, **options}
        client = AsyncSsoClient(url, credentials, **options)
        self._clients.append(client)
        return client

    def start(self) -> None:
        """Raises what keeps the thread from running, such as OSError if the process has too many open files."""
        self._process_id = os.getpid()
        self._thread.start()
        self._is_running.wait()
        if self._failure is not None:
            raise self._failure

    def send(self, client: AsyncSsoClient, call: ApiCall[T]) -> T:
        """Returns the result. Raises ClientError, also if the thread does not run or is closed meanwhile."""
        if self._token is None:
            raise _closed()
        if self._process_id != os.getpid():  # a fork copies the token, but not the thread
            raise ConnectionFailed("the replica was started in another process")
        answer: Future[T] = Future()
        try:
            self._token.run_sync_soon(self._start_request, client, call, answer)
        except trio.RunFinishedError:
            raise _closed() from None
        return answer.result()

    def close(self) -> None:
        """Ends all requests, closes their connections and waits for the thread. Can be called again."""
        if self._process_id != os.getpid() or self._thread.ident is None:  # it was not started in this process
            return
        self._is_running.wait()
        if self._token is not None:
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._requests.cancel_scope.cancel)
        self._thread.join()

    def _run_loop(self) -> None:
        try:
            trio.run(self._run)
        except BaseException as error:
            if self._token is not None:
                raise
            self._failure = error
        finally:
            self._is_running.set()

    async def _run(self) -> None:
        async with trio.open_nursery() as self._requests:
            self._token = trio.lowlevel.current_trio_token()
            self._is_running.set()
            await trio.sleep_forever()
        for client in self._clients:
            await client.close()
        for connected in list(self._sockets):  # httpcore leaves a socket open if its TLS handshake is cancelled
            connected.close()

    async def _trace(self, request: httpx.Request) -> None:
        request.extensions["trace"] = self._remember_socket

    async def _remember_socket(self, event: str, details: dict[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            self._sockets.add(details["return_value"].get_extra_info("socket"))

    def _start_request(self, client: AsyncSsoClient, call: ApiCall[T], answer: Future[T]) -> None:
        if self._requests.cancel_scope.cancel_called:
            answer.set_exception(_closed())
        else:
            self._requests.start_soon(self._send, client, call, answer)

    async def _send(self, client: AsyncSsoClient, call: ApiCall[T], answer: Future[T]) -> None:
        try:
            result = await client.send(call)
        except Exception as error:
            answer.set_exception(error)
        except BaseException:  # the request was cancelled
            answer.set_exception(_closed())
            raise
        else:
            answer.set_result(result)


def _closed() -> ConnectionFailed:
    return ConnectionFailed("the replica is closed")
