"""Serves a replica over HTTP on a loopback address, for programs in other languages.

Every program on the machine may ask, so a browser must not be made to ask for a web site: the name in ``Host`` must be
one of this machine.
"""

import math
import re
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson
import structlog
import trio

from sso.core.errors import ApiError
from sso.core.field_errors import FieldError
from sso.perm.replica.answers import CHECK, EVALUATION, EVALUATIONS
from sso.replica.async_replica import AsyncReplica
from sso.serve.http1 import server
from sso.serve.server_limits import ServerLimits
from sso.web.body import MAX_BYTES, InvalidBody, parse_body

PATHS = (CHECK, EVALUATION, EVALUATIONS)
READY = "/readyz"
LOOPBACK_NAMES = frozenset(("localhost", "127.0.0.1", "::1"))
MAX_CONNECTIONS = 1000
REVISION = re.compile(rb"[1-9][0-9]{15}", re.ASCII)  # a cursor of the change stream
_REQUEST_ID = re.compile(rb"[!-~]{1,128}", re.ASCII)

log = structlog.get_logger()


class ForeignHost(ApiError):
    status = 421
    message = "Host: must be a name of this machine, such as localhost"


class NoSuchPath(ApiError):
    status = 404
    message = f"not found: a replica answers POST {', '.join(PATHS)}, and GET {READY}"


class WrongMethod(ApiError):
    status = 405

    def __init__(self, allowed: str) -> None:
        super().__init__(f"method not allowed: use {allowed}")
        self.headers = {"Allow": allowed}


async def serve_replica(
    replica: AsyncReplica,
    sockets: Sequence[socket.socket],
    stop: trio.Event,
    ready: Callable[[], None],
    hosts: Iterable[str] = (),
) -> None:
    """Serves until ``stop`` is set. ``hosts`` are further names of this machine."""
    app = Sidecar(replica, frozenset(hosts) | LOOPBACK_NAMES)
    await server.serve(app, sockets, stop, ready, ServerLimits(per_address=MAX_CONNECTIONS))


class Sidecar:
    """The ASGI application."""

    def __init__(self, replica: AsyncReplica, hosts: frozenset[str]) -> None:
        self._replica = replica
        self._hosts = hosts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for phase in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{phase}.complete"})
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close"})
        else:
            await self._respond(scope, receive, send)

    async def _respond(self, scope: Any, receive: Any, send: Any) -> None:
        status, headers = 200, self._headers(scope)
        try:
            self._check_request(scope)
            if scope["path"] == READY:
                body: dict[str, Any] = self._readiness()
            else:
                body = await self._answer(scope, await _read_body(receive), headers)
        except ApiError as error:
            status = error.status
            headers |= error.headers
            body = {"status": "ERROR", "error": str(error.message)}
        except Exception:
            log.exception("replica.request_failed", path=scope["path"])
            status, body = 500, {"status": "ERROR", "error": "internal error"}
        await _send(send, status, headers, body)

    def _headers(self, scope: Any) -> dict[str, str]:
        """The headers of every response: they say how old the copy is."""
        headers = {"Cache-Control": "no-store"}
        if (staleness := self._replica.staleness) is not None:
            headers["Permission-Staleness"] = str(math.ceil(staleness))
        if self._replica.revision:
            headers["Permission-Revision"] = self._replica.revision
        if (request_id := _header(scope, b"x-request-id")) and _REQUEST_ID.fullmatch(request_id):
            headers["X-Request-ID"] = request_id.decode()
        return headers

    def _check_request(self, scope: Any) -> None:
        host = (_header(scope, b"host") or b"").decode("latin-1").lower()
        if re.sub(r":[0-9]*$", "", host).strip("[]") not in self._hosts:
            raise ForeignHost
        if scope["path"] not in (*PATHS, READY):
            raise NoSuchPath
        allowed = ("GET", "HEAD") if scope["path"] == READY else ("POST",)
        if scope["method"] not in allowed:
            raise WrongMethod(", ".join(allowed))
        if scope["query_string"]:
            name = re.split(rb"[=&]", scope["query_string"])[0].decode("latin-1")[:100]
            raise FieldError((name,), "unknown query parameter")

    def _readiness(self) -> dict[str, Any]:
        self._replica.replica.require_current()
        return {"status": "OK"}

    async def _answer(self, scope: Any, raw: bytes, headers: dict[str, str]) -> dict[str, Any]:
        content_type = (_header(scope, b"content-type") or b"").decode("latin-1")
        fields: dict[str, Any] = parse_body(raw, content_type or None, forms=False).fields
        answer = await self._replica.answer(scope["path"], fields, _demanded_revision(scope))
        headers["Permission-Revision"] = answer.revision
        headers["Permission-Staleness"] = str(math.ceil(answer.staleness))
        return answer.body


def _demanded_revision(scope: Any) -> str | None:
    values = [value for name, value in scope["headers"] if name == b"at-least-revision"]
    if not values:
        return None
    if len(values) > 1 or not REVISION.fullmatch(values[0]):
        raise FieldError(("At-Least-Revision",), "must be a Permission-Revision of an earlier response")
    return str(values[0].decode())


def _header(scope: Any, name: bytes) -> bytes | None:
    return next((value for key, value in scope["headers"] if key == name), None)


async def _read_body(receive: Any) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise InvalidBody("was not received completely")
        body += message.get("body", b"")
        if len(body) > MAX_BYTES:
            raise InvalidBody(f"is larger than {MAX_BYTES} bytes", 413)
        if not message.get("more_body"):
            return bytes(body)


async def _send(send: Any, status: int, headers: dict[str, str], body: dict[str, Any]) -> None:
    data = orjson.dumps(body)
    headers |= {"Content-Type": "application/json", "Content-Length": str(len(data))}
    encoded = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": data})
