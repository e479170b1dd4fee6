"""The permission endpoints: read a call and who makes it, hand it on, reply."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

from quart import Blueprint, Response, request

from sso.core.errors import NotFound
from sso.perm.caller import PresentedCredentials
from sso.perm.credential_rules import ENDPOINTS, EndpointRule, Subject
from sso.perm.credentials.exchange_jwt import ExchangeJwt
from sso.perm.credentials.service_jwt import app_id_of
from sso.perm.credentials.signed_address import key_id_of
from sso.perm.errors import InvalidInput
from sso.perm.input.names import read_application_key
from sso.perm.request import PermissionRequest
from sso.perm.wiring import Permissions
from sso.web.body import MAX_SCHEMA_VALUES, MAX_VALUES
from sso.web.request import client_address, read_body, read_model, text_header
from sso.web.request_model import RequestModel, at_most
from sso.web.response import reply

Handler = Callable[[PermissionRequest], Awaitable[dict[str, Any]]]


class BodyLimit(NamedTuple):
    max_bytes: int = 256 * 1024
    max_values: int = MAX_VALUES


SMALL = BodyLimit()
MEMBERS = BodyLimit(max_values=MAX_SCHEMA_VALUES)  # a save lists every member of a project
SCHEMA = BodyLimit(1024 * 1024, MAX_SCHEMA_VALUES)


def permission_routes(perm: Permissions, find_signing_pem: Callable[[str], str | None]) -> Blueprint:
    routes = Blueprint("permissions", __name__, url_prefix="/api/permissions")

    async def answer(path: str, handler: Handler, limit: BodyLimit) -> Response:
        fields = (await read_body(forms=False, max_bytes=limit.max_bytes, max_values=limit.max_values)).fields
        rule = ENDPOINTS[path]
        caller = await perm.callers.identify(await evidence(rule, fields), rule, fields)
        if rule.subject is Subject.USER_DATA and caller.service_id is not None:
            fields = {"application_id": caller.service_id, **fields}
        return reply(await handler(PermissionRequest(fields, caller, request.headers.get("If-Match"))))

    async def evidence(rule: EndpointRule, fields: dict[str, Any]) -> PresentedCredentials:
        """The address is the connection's, or one signed with an access key of the application of the call."""
        found = PresentedCredentials.collect(
            client_address(),
            request.headers.get("Authorization", ""),
            text_header("Factor"),
            request.headers.get("Service-Jwt"),
            fields,
        )
        about = rule.application_of(fields, app_id_of(found.service_jwt))
        signature = request.headers.get("Signature")
        counting = await perm.addresses.resolve(found.address, _said_address(), signature, (about,))
        if signature is None or counting == found.address:
            return found
        return replace(found, address=counting, vouched_by=key_id_of(signature))

    for path, handler, limit in (
        ("/application", perm.applications.handle, SMALL),
        ("/application/tags", perm.applications.tags, SMALL),
        ("/user/info", perm.projects.info, SMALL),
        ("/publish", perm.projects.publish, SMALL),
        ("/project", perm.projects.handle, SMALL),
        ("/project/membership", perm.memberships.handle, MEMBERS),
        ("/group", perm.groups.handle, SMALL),
        ("/group/access", perm.groups.access, SMALL),
        ("/group/tags", perm.groups.tags, SMALL),
        ("/accessKey", perm.key_calls.handle, SMALL),
        ("/roles", perm.roles.handle, SCHEMA),
        ("/meta/schema", perm.schemas.handle, SCHEMA),
        ("/meta/data", perm.user_data.handle, SCHEMA),
        ("/audit", perm.audit.handle, SMALL),
    ):
        _add(routes, path, answer, handler, limit)

    @routes.get("/application/publicKeys/<app_id>")
    async def public_keys(app_id: str) -> Response:
        try:
            wanted = read_application_key(app_id, "appID")
        except InvalidInput:
            raise NotFound("application not found") from None
        return reply({"status": "OK", "keys": await perm.application_keys.published(wanted)})

    @routes.get("/application/publicKey/<key_id>")
    async def public_key(key_id: str) -> Response:
        pem = find_signing_pem(key_id) or await perm.application_keys.find_pem(key_id)
        if pem is None:
            raise NotFound("key not found")
        return reply({"status": "OK", "key": {"id": key_id, "data": pem}})

    return routes


class ExchangeRequest(RequestModel):
    jwt: Annotated[str, at_most(8192, at_least=1)]
    factor: Annotated[str, at_most(256, at_least=1)]


def exchange_routes(exchange: ExchangeJwt) -> Blueprint:
    routes = Blueprint("exchange_jwt", __name__)

    @routes.post("/proxy/oauth/exchangeJwt")
    async def exchange_jwt() -> Response:
        form = await read_model(ExchangeRequest)
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        access_key = key.strip() if scheme.lower() == "bearer" else ""
        return reply({"status": "OK", "jwt": await exchange.renew(access_key, form.jwt, form.factor, client_address())})

    return routes


def _add(
    routes: Blueprint,
    path: str,
    answer: Callable[[str, Handler, BodyLimit], Awaitable[Response]],
    handler: Handler,
    limit: BodyLimit,
) -> None:
    async def route() -> Response:
        return await answer(path, handler, limit)

    routes.add_url_rule(path, endpoint=path.strip("/").replace("/", "_"), view_func=route, methods=["POST"])


def _said_address() -> str | None:
    """The address that a server says its client has: ``Ip: …`` or ``Authorization: Ip …``."""
    scheme, _, said = request.headers.get("Authorization", "").partition(" ")
    return request.headers.get("Ip", said if scheme.lower() == "ip" else None)
