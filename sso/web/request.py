"""Reads the current request: its body, headers and client address."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

from quart import Request as QuartRequest
from quart import Websocket
from quart.globals import _cv_app, _cv_request, _cv_websocket
from werkzeug.exceptions import RequestEntityTooLarge

from sso.core.errors import ApiError
from sso.core.fair_thread import FairThread
from sso.core.field_errors import FieldError
from sso.core.language import Text
from sso.core.net import Address
from sso.web.body import MAX_VALUES, InvalidBody, ParsedBody, is_cheap, parse_body
from sso.web.client_address import LOCAL, TrustedProxies, resolve_client_address
from sso.web.forwarding_monitor import ignored_header
from sso.web.multipart import parse_multipart
from sso.web.request_model import RequestModel, validate

M = TypeVar("M", bound=RequestModel)
Parsed = TypeVar("Parsed")

MAX_BODY = 256 * 1024


async def read_model(model: type[M], *, forms: bool = True, require_type: bool = False, max_bytes: int = MAX_BODY) -> M:
    """Returns the body of the current request as a model. Raises InvalidBody."""
    body = await read_body(forms=forms, require_type=require_type, max_bytes=max_bytes, repeatable=model.repeatable)
    return validate(model, body)


async def read_body(
    *,
    forms: bool = True,
    require_type: bool = False,
    max_bytes: int = MAX_BODY,
    max_values: int = MAX_VALUES,
    repeatable: frozenset[str] = frozenset(),
) -> ParsedBody:
    """Returns the parsed body of the current request. Raises InvalidBody."""
    current = _cv_request.get().request
    raw = await read_raw(max_bytes)
    content_types = current.headers.getlist("Content-Type")
    if len(content_types) > 1:
        raise FieldError(("Content-Type",), "expected one header, got several")
    parse = partial(
        parse_body,
        raw,
        content_types[0] if content_types else None,
        forms=forms,
        require_type=require_type,
        max_bytes=max_bytes,
        max_values=max_values,
        repeatable=repeatable,
    )
    return parse() if is_cheap(raw) else await parse_in_thread(parse)


async def read_raw(max_bytes: int) -> bytes:
    current = _cv_request.get().request
    body: Any = current.body  # LazyBody or FastBody
    body.limit(max_bytes)
    try:
        raw = cast(bytes, await current.get_data(cache=False))
    except RequestEntityTooLarge:
        raise InvalidBody(f"is larger than {max_bytes} bytes", status=413) from None
    if current.headers.get("Content-Encoding", "identity") != "identity":
        raise InvalidBody("is not supported", 415, subject="Content-Encoding")
    return raw


async def read_multipart(max_bytes: int) -> dict[str, str]:
    """Returns the fields of a form with files. Raises InvalidBody."""
    current = _cv_request.get().request
    boundary = current.mimetype_params.get("boundary", "")
    if not (boundary.isascii() and 0 < len(boundary) <= 70):
        raise InvalidBody("must have a boundary", 415, subject="Content-Type")
    return await parse_in_thread(partial(parse_multipart, await read_raw(max_bytes), boundary))


async def parse_in_thread(parse: Callable[[], Parsed]) -> Parsed:
    """Parses a costly body, or a part of one, in a thread: no client may block the event loop."""
    try:
        client = client_address()
    except UnknownClient:
        client = LOCAL
    parsers: FairThread = _cv_app.get().app.config["PARSERS"]
    return await parsers.run(client, parse)


def current_request() -> QuartRequest | Websocket:
    """Returns the current request or WebSocket, not one of Quart's proxies, which look it up again at each use."""
    context: Any = _cv_request.get(None) or _cv_websocket.get()
    current: QuartRequest | Websocket = context.request_websocket
    return current


def client_address() -> Address:
    """Returns the address of the client of the current request. Raises UnknownClient."""
    proxies: TrustedProxies = _cv_app.get().app.config["PROXIES"]
    current = current_request()
    peer = current.scope.get("client")
    try:
        return resolve_client_address(peer[0] if peer else None, current.headers.getlist, proxies)
    except ValueError:
        raise UnknownClient from None


def ignored_forwarding_header() -> str | None:
    """Returns the name of an ignored forwarding header, or None. With one, the client address may be a proxy's."""
    return ignored_header(current_request().scope, _cv_app.get().app.config["PROXIES"])


class UnknownClient(ApiError):
    status = 403
    code = "access_denied"
    message = Text("Your network address could not be determined.")


def text_header(name: str) -> str | None:
    """Returns a header that holds text: clients send UTF-8, but the server decodes headers as Latin-1."""
    value = current_request().headers.get(name)
    try:
        return value if not value or value.isascii() else value.encode("latin-1").decode()
    except UnicodeError:
        return value
