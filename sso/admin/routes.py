"""The routes of the management API. Each authenticates the caller, checks the right, validates, and replies."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace
from quart import Blueprint, Response, request

from sso.admin.caller import AdminCaller
from sso.admin.request import (
    AdminRequest,
    AdminResponse,
    AdminRoute,
    DeleteQuery,
    EventStreamRequest,
    field_members,
    with_override,
)
from sso.admin.wiring import ManagementApi
from sso.change_stream.revision_headers import demanded_revision, revision_headers
from sso.core.errors import ApiError
from sso.core.field_errors import FieldError
from sso.perm.caller import PresentedCredentials
from sso.perm.errors import TooManyAdminRequests
from sso.web.client_connection import ClientConnection, client_connection, hold_request
from sso.web.request import client_address, read_body, text_header
from sso.web.response import reply

EVENT_STREAM = "text/event-stream"


def admin_routes(management: ManagementApi) -> Blueprint:
    routes = Blueprint("admin", __name__, url_prefix="/api/admin")
    for route in management.routes:
        name = f"{route.method}_{route.path}".replace("/", "_").replace("<", "").replace(">", "").replace("-", "_")
        view = _view(management, route)
        routes.add_url_rule(route.path, endpoint=name, view_func=view, methods=[route.method])
    return routes


def _view(management: ManagementApi, route: AdminRoute) -> Callable[..., Awaitable[Response]]:
    async def view(**path: str) -> Response:
        if wait_s := await management.rate.add(client_address()):
            raise TooManyAdminRequests(wait_s)
        caller = await management.authenticator.authenticate(_credentials())
        with management.limit(caller):
            await management.authorize(caller, route)
            try:
                return await _respond(management, route, caller, path)
            except FieldError as error:
                error.extra |= field_members(error)
                raise

    return view


async def _respond(
    management: ManagementApi, route: AdminRoute, caller: AdminCaller, path: Mapping[str, str]
) -> Response:
    query = route.read_query(path, _query_fields())
    if isinstance(query, DeleteQuery):
        query = with_override(query, await read_body(forms=False))
    body = route.read_body(path, await read_body(forms=False, **route.body_limit._asdict())) if route.body else None
    if_match = request.headers.get("If-Match")
    if route.waits:
        stream = _event_stream_request(management, route, caller)
        return await _wait_for_response(route, AdminRequest(caller, path, query, event_stream=stream))
    admin_request = AdminRequest(caller, path, query, body, if_match)
    if route.states_revision:
        return await _answer_at_revision(management, route, admin_request)
    return _reply(await route.respond(admin_request))


async def _answer_at_revision(management: ManagementApi, route: AdminRoute, admin_request: AdminRequest) -> Response:
    demanded = demanded_revision()
    await management.revisions.wait(demanded, hold_request)
    revision = await management.revisions.read()  # before the permissions are read, which are then at least as new
    response = await route.respond(admin_request)
    return _reply(replace(response, headers={**response.headers, **revision_headers(revision, demanded)}))


def _reply(response: AdminResponse) -> Response:
    return reply({"status": "OK", **response.members}, response.status, response.headers)


async def _wait_for_response(route: AdminRoute, admin_request: AdminRequest) -> Response:
    connection = client_connection()
    with connection.cancel_on_disconnect():
        response = await route.respond(admin_request)
    if response.event_stream is None:
        return _reply(response)
    body = _until_disconnect(connection, response.event_stream)
    streamed = Response(body, response.status, dict(response.headers), content_type=EVENT_STREAM)
    streamed.timeout = None  # the stream ends by itself
    return streamed


async def _until_disconnect(connection: ClientConnection, frames: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    async with aclosing(frames):
        with connection.cancel_on_disconnect():
            async for frame in frames:
                yield frame


def _event_stream_request(
    management: ManagementApi, route: AdminRoute, caller: AdminCaller
) -> EventStreamRequest | None:
    """Returns None if the client does not want server-sent events, or only the head of the response."""
    if (
        request.method == "HEAD"
        or request.accept_mimetypes.best_match(("application/json", EVENT_STREAM)) != EVENT_STREAM
    ):
        return None
    credentials = _credentials()

    async def is_still_allowed() -> bool:
        try:
            again = await management.authenticator.authenticate(credentials)
            await management.authorize(again, route)
        except ApiError:
            return False
        return again.application_id == caller.application_id

    return EventStreamRequest(text_header("Last-Event-ID") or "", is_still_allowed)


def _credentials() -> PresentedCredentials:
    authorization = request.headers.get("Authorization", "")
    return PresentedCredentials.collect(client_address(), authorization, text_header("Factor"), None, {})


def _query_fields() -> dict[str, Any]:
    fields = request.args.to_dict(flat=False)
    if repeated := [name for name, values in fields.items() if len(values) > 1]:
        raise FieldError((repeated[0],), "must be given once")
    return {name: values[0] for name, values in fields.items()}
