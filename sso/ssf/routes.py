"""The endpoints of the Shared Signals Framework, for clients with an access token of client_credentials."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from quart import Blueprint, Response, request

from sso.audit.trail import AuditActor
from sso.core.field_errors import FieldError
from sso.core.service_token import SSF_MANAGE, SSF_READ
from sso.ssf.model import POLL_PATH, NewSettings, SignalStream
from sso.ssf.requests import (
    MAX_BODY_BYTES,
    InsufficientScope,
    InvalidServiceToken,
    PollRequest,
    StatusRequest,
    StreamRequest,
    SubjectRequest,
    VerificationRequest,
    new_settings,
    subject_user,
)
from sso.ssf.wiring import SharedSignals
from sso.web.client_connection import ClientConnection, client_connection
from sso.web.deferred_response import DeferredResponse
from sso.web.request import client_address, read_model
from sso.web.request_model import RequestModel
from sso.web.response import reply

METADATA = "/.well-known/ssf-configuration"
STREAM, STATUS, VERIFY = "/ssf/stream", "/ssf/status", "/ssf/verify"
ADD_SUBJECT, REMOVE_SUBJECT = "/ssf/subjects:add", "/ssf/subjects:remove"
NO_STORE = {"Cache-Control": "no-store"}

# Returns the client and the scopes of a valid access token, None for other texts.
FindScopes = Callable[[str], Awaitable[tuple[str, tuple[str, ...]] | None]]
Model = TypeVar("Model", bound=RequestModel)


def transmitter_metadata(issuer: str) -> dict[str, Any]:
    return {
        "spec_version": "1_0",
        "issuer": issuer,
        "jwks_uri": f"{issuer}/proxy/oauth/keys",
        "delivery_methods_supported": ["urn:ietf:rfc:8935", "urn:ietf:rfc:8936"],
        "configuration_endpoint": f"{issuer}{STREAM}",
        "status_endpoint": f"{issuer}{STATUS}",
        "add_subject_endpoint": f"{issuer}{ADD_SUBJECT}",
        "remove_subject_endpoint": f"{issuer}{REMOVE_SUBJECT}",
        "verification_endpoint": f"{issuer}{VERIFY}",
        "critical_subject_members": [],
        "authorization_schemes": [{"spec_urn": "urn:ietf:rfc:6749"}],
        "default_subjects": "ALL",
    }


def signal_routes(signals: SharedSignals, issuer: str, find_scopes: FindScopes) -> Blueprint:
    routes = Blueprint("shared_signals", __name__)
    operations = signals.operations

    @routes.get(METADATA)
    async def metadata() -> Response:
        return reply(transmitter_metadata(issuer))

    @routes.get(STREAM)
    async def read_streams() -> Response:
        client_id = await authenticate(SSF_READ, SSF_MANAGE)
        if "stream_id" in request.args:
            return answer((await operations.get(client_id, stream_id())).configuration(issuer))
        return answer([stream.configuration(issuer) for stream in await operations.list(client_id)])

    @routes.post(STREAM)
    async def create_stream() -> Response:
        client_id = await authenticate(SSF_MANAGE)
        body = await read(StreamRequest)
        settings = new_settings(body, issuer, client_id, None)
        stream = await operations.create(actor(client_id), client_id, settings)
        return answer(stream.configuration(issuer), 201)

    @routes.route(STREAM, methods=["PATCH", "PUT"])
    async def change_stream() -> Response:
        client_id = await authenticate(SSF_MANAGE)
        body = await read(StreamRequest)
        if body.stream_id is None:
            raise FieldError(("stream_id",), "is required")
        replaces = request.method == "PUT"

        def settings(stream: SignalStream) -> NewSettings:
            return new_settings(body, issuer, client_id, None if replaces else stream)

        changed = await operations.change(actor(client_id), client_id, body.stream_id, settings)
        return answer(changed.configuration(issuer))

    @routes.delete(STREAM)
    async def delete_stream() -> Response:
        client_id = await authenticate(SSF_MANAGE)
        await operations.delete(actor(client_id), client_id, stream_id())
        return no_content()

    @routes.get(STATUS)
    async def read_status() -> Response:
        client_id = await authenticate(SSF_READ, SSF_MANAGE)
        return answer((await operations.get(client_id, stream_id())).status_json())

    @routes.post(STATUS)
    async def set_status() -> Response:
        client_id = await authenticate(SSF_MANAGE)
        body = await read(StatusRequest)
        values = (body.stream_id, body.status, body.reason)
        return answer((await operations.set_status(actor(client_id), client_id, *values)).status_json())

    @routes.post(ADD_SUBJECT)
    async def add_subject() -> Response:
        await exclude_subject(excluded=False)
        return answer({})

    @routes.post(REMOVE_SUBJECT)
    async def remove_subject() -> Response:
        await exclude_subject(excluded=True)
        return no_content()

    async def exclude_subject(*, excluded: bool) -> None:
        client_id = await authenticate(SSF_MANAGE)
        body = await read(SubjectRequest)
        user_id = subject_user(body.subject, issuer)
        await operations.set_excluded(client_id, body.stream_id, user_id, excluded=excluded)

    @routes.post(VERIFY)
    async def verify() -> Response:
        client_id = await authenticate(SSF_MANAGE)
        body = await read(VerificationRequest)
        await operations.verify(client_id, body.stream_id, body.state)
        return no_content()

    @routes.post(POLL_PATH)
    async def poll() -> Response:
        client_id = await authenticate(SSF_READ, SSF_MANAGE)
        body = await read(PollRequest)
        return DeferredResponse(wait_for_events, client_id, stream_id(), body, client_connection())

    async def wait_for_events(client_id: str, polled: str, body: PollRequest, connection: ClientConnection) -> Response:
        with connection.cancel_on_disconnect():
            events, has_more = await signals.polls.wait(client_id, polled, body)
            sets = await signals.tokens.sign(events)
        return answer({"sets": sets, **({"moreAvailable": True} if has_more else {})})

    async def authenticate(*scopes: str) -> str:
        """Returns the client of the access token, which has one of the scopes."""
        found = await find_scopes(_bearer())
        if found is None:
            raise InvalidServiceToken
        client_id, granted = found
        if not set(scopes) & set(granted):
            raise InsufficientScope(scopes[0])
        return client_id

    return routes


def stream_id() -> str:
    """Returns the stream that the query names."""
    names = request.args.getlist("stream_id")
    if len(names) != 1 or not 0 < len(names[0]) <= 64:
        raise FieldError(("stream_id",), "expected the id of a stream in the query, once")
    return names[0]


async def read(model: type[Model]) -> Model:
    return await read_model(model, forms=False, max_bytes=MAX_BODY_BYTES)


def actor(client_id: str) -> AuditActor:
    return AuditActor(client_id=client_id, address=str(client_address()))


def answer(data: Any, status: int = 200) -> Response:
    return reply(data, status, headers=NO_STORE)


def no_content() -> Response:
    return Response(b"", 204, headers=NO_STORE)


def _bearer() -> str:
    headers = request.headers.getlist("Authorization")
    scheme, _, token = headers[0].partition(" ") if len(headers) == 1 else ("", "", "")
    return token.strip() if scheme.lower() == "bearer" else ""
