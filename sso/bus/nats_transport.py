"""The bus over NATS: core NATS, without JetStream. Each worker has a subject; another one is for all workers.

nats-py runs on the asyncio loop of the database. Its own reconnects and pings are not used: a lost connection, a server
that does not answer, and messages that arrive faster than they are handled all end :meth:`NatsTransport.run`, and the
bus calls it again.
"""

import asyncio
import hashlib
import random
import ssl
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar

import nats
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error

from sso.bus.transport import EVERYONE, MAX_PAYLOAD, BusUnavailable, Message
from sso.core.bus_url import BusUrl

T = TypeVar("T")

SUBJECT = "sso"
CONNECT_S = 2
PROBE_EVERY_S = 1.0
ANSWER_S = 2
LAST_ANSWER_S = 0.5  # another wait for an answer that a busy event loop has not read yet
CLOSE_S = 1.0
NEVER_S = 10**6  # between the pings of the library
MAX_PENDING, MAX_PENDING_BYTES = 10_000, 16 * 2**20  # messages that have arrived and are not handled yet

log = structlog.get_logger()
FAILURES = (Error, OSError, asyncio.TimeoutError, ssl.SSLError)


class AsyncioRunner(Protocol):
    async def run_on_asyncio(self, coroutine: Coroutine[Any, Any, T]) -> T: ...


class NatsTransport:
    def __init__(self, asyncio_runner: AsyncioRunner, url: BusUrl, worker: str, tls: ssl.SSLContext | None) -> None:
        self._run_on_asyncio = asyncio_runner.run_on_asyncio
        self._url = url
        self._servers = random.sample(url.servers, len(url.servers))  # the workers spread over the servers
        self._worker = worker
        self._tls = tls
        self._client: Client | None = None
        self._lost: asyncio.Future[str] | None = None  # why the connection was lost

    def label(self, topic: str) -> str:
        """A digest: who can read messages learns no gsid, with which a login page could be opened."""
        return hashlib.sha256(topic.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    async def run(self, receive: Callable[[str], None], connected: Callable[[], None]) -> NoReturn:
        await self._run_on_asyncio(self._serve(receive, connected))
        raise AssertionError("unreachable")

    async def send(self, messages: Sequence[Message]) -> None:
        await self._run_on_asyncio(self._publish(messages))

    async def _serve(self, receive: Callable[[str], None], connected: Callable[[], None]) -> NoReturn:
        _contain_errors_of_library()
        client = await self._connect()
        self._lost = asyncio.get_running_loop().create_future()
        self._client = client
        try:
            await self._subscribe(client, receive)
            connected()
            while True:
                await asyncio.wait([self._lost], timeout=PROBE_EVERY_S)
                if self._lost.done():
                    raise BusUnavailable(self._lost.result())
                await _wait_for_answer(client)
                if client._reading_task is None or client._reading_task.done():
                    raise BusUnavailable("the client has stopped reading")
        except FAILURES as error:
            raise BusUnavailable(_reason(error)) from None
        finally:
            self._client = None
            if not self._lost.done():
                self._lost.set_result("the connection was closed")
            await _close(client)

    async def _connect(self) -> Client:
        """Tries each server once, and the next one first when it is called again."""
        reason = ""
        for _ in self._url.servers:
            self._servers.append(self._servers.pop(0))
            client = Client()
            try:
                await client.connect(**self._options(client))
                self._check_encryption(client)
            except FAILURES as error:
                reason = f"{self._servers[0]}: {_reason(error)}"
                await _close(client)
            except BaseException:
                await _close(client)
                raise
            else:
                return client
        raise BusUnavailable(reason)

    def _options(self, client: Client) -> dict[str, Any]:
        def secret(value: str | None) -> Callable[[], str] | None:
            """Returns a function that the library calls just before it sends the secret."""
            if value is None:
                return None

            def read() -> str:
                self._check_encryption(client)
                return value

            return read

        url = self._url
        return {
            "servers": [f"nats://{self._servers[0]}"],
            "name": SUBJECT,
            "user": secret(url.user),
            "password": secret(url.password),
            "token": secret(url.token),
            "tls": self._tls,
            "no_echo": True,  # this process has signalled its own subscribers already
            "allow_reconnect": False,
            "connect_timeout": CONNECT_S,
            "ping_interval": NEVER_S,
            "error_cb": self._on_error,
            "closed_cb": self._on_closed,
        }

    def _check_encryption(self, client: Client) -> None:
        """The library itself encrypts only if the server asks for it."""
        if self._tls is not None and not client._server_info.get("tls_required"):
            raise Error("the server does not use TLS")

    async def _subscribe(self, client: Client, receive: Callable[[str], None]) -> None:
        async def handle(message: Msg) -> None:
            if len(message.data) <= MAX_PAYLOAD:
                receive(message.data.decode("ascii", "replace"))

        for subject in (subject_of(EVERYONE), subject_of(self._worker)):
            await client.subscribe(
                subject, cb=handle, pending_msgs_limit=MAX_PENDING, pending_bytes_limit=MAX_PENDING_BYTES
            )
        await _flush(client)

    async def _publish(self, messages: Sequence[Message]) -> None:
        client, lost = self._client, self._lost
        if client is None or lost is None:
            raise BusUnavailable("the bus is not connected")
        try:
            for worker, payload in messages:
                await client.publish(subject_of(worker), payload.encode("ascii", "replace"))
            await _first(_flush(client), lost)
        except FAILURES as error:
            raise BusUnavailable(_reason(error)) from None

    async def _on_error(self, error: Exception) -> None:
        """Called by the library: for a slow consumer, and for errors that end the connection."""
        if self._client is None:
            raise error  # otherwise the library would try the same server for minutes
        if self._lost is not None and not self._lost.done():
            self._lost.set_result(_reason(error))

    async def _on_closed(self) -> None:
        await self._on_error(Error("the connection was closed"))


def subject_of(worker: str) -> str:
    return f"{SUBJECT}.all" if worker == EVERYONE else f"{SUBJECT}.worker.{worker}"


async def _first(work: Coroutine[Any, Any, None], lost: "asyncio.Future[str]") -> None:
    """Awaits the work. Raises BusUnavailable if the connection is lost before."""
    task = asyncio.ensure_future(work)
    either: list[asyncio.Future[Any]] = [task, lost]
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise BusUnavailable(lost.result())
        task.result()
    finally:
        task.cancel()


async def _flush(client: Client) -> None:
    """Returns when the server has read everything. The library alone would let its PING overtake what waits."""
    await asyncio.wait_for(client._flush_pending(force_flush=True), ANSWER_S)
    await client.flush(ANSWER_S)


async def _wait_for_answer(client: Client) -> None:
    try:
        await client.flush(ANSWER_S)
    except Error:
        await client.flush(LAST_ANSWER_S)  # type: ignore[arg-type]


async def _close(client: Client) -> None:
    """Closes the connection at once. The library would first write what is waiting, which may block."""
    client._pending, client._pending_data_size = [], 0
    writer = getattr(client._transport, "_io_writer", None)
    if writer is not None:
        writer.transport.abort()
    with suppress(*FAILURES):
        await asyncio.wait_for(client.close(), CLOSE_S)


class _ErrorHandler:
    """Logs the failure of a task of nats-py. trio-asyncio would end the whole process."""

    def __init__(self, previous: Any) -> None:
        self._previous = previous

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        task = context.get("future") or context.get("task")
        coroutine = task.get_coro() if isinstance(task, asyncio.Task) else None
        code = getattr(coroutine, "cr_code", None)
        if code is not None and Path(nats.__file__).parent in Path(code.co_filename).parents:
            log.warning("bus.client_failed", reason=_reason(context.get("exception") or Error(context["message"])))
        elif self._previous is not None:
            self._previous(loop, context)
        else:
            loop.default_exception_handler(context)


def _contain_errors_of_library() -> None:
    loop = asyncio.get_running_loop()
    handler = loop.get_exception_handler()
    if not isinstance(handler, _ErrorHandler):
        loop.set_exception_handler(_ErrorHandler(handler))


def _reason(error: BaseException) -> str:
    """Returns the text of the error; some have none."""
    return str(error) or type(error).__name__
