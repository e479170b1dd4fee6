"""The routes of the permission endpoints: authenticate the caller, pass the request to its endpoint, reply."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, NamedTuple

from quart import Blueprint, Response

from sso.change_stream.revision_headers import demanded_revision, revision_headers
from sso.core.errors import Forbidden, NotFound
from sso.core.field_errors import FieldError
from sso.perm.accepted_credentials import ENDPOINT_RULES, EndpointRule, Subject
from sso.perm.caller import PresentedCredentials
from sso.perm.credentials.exchange_jwt import ExchangeJwt
from sso.perm.credentials.service_jwt import claimed_application_id
from sso.perm.credentials.signed_address import SignedAddresses, signing_key_id
from sso.perm.input import validators
from sso.perm.input.names import read_application_key
from sso.perm.request import Handler, PermissionRequest, by_action
from sso.perm.wiring import PermissionEndpoints, Permissions
from sso.web.body import MAX_SCHEMA_VALUES, SCHEMA_BODY, SMALL_BODY, BodyLimit
from sso.web.request import client_address, current_request, read_body, read_model, text_header
from sso.web.request_model import QUERY_FLAGS, RequestModel, at_most
from sso.web.response import reply, reply_json_bytes

MEMBERS = BodyLimit(max_values=MAX_SCHEMA_VALUES)  # a save lists every member of a project


class Endpoint(NamedTuple):
    path: str
    handler: Handler
    limit: BodyLimit = SMALL_BODY


def endpoint_table(perm: PermissionEndpoints) -> tuple[Endpoint, ...]:
    """All POST endpoints; `ENDPOINT_RULES` has the credentials that each of them accepts."""
    application, project, group, key = perm.applications, perm.projects, perm.groups, perm.access_keys
    return (
        Endpoint("/application", by_action(get=application.get, save=application.save, delete=application.delete)),
        Endpoint("/application/tags", application.save_tags),
        Endpoint("/user/info", project.user_info),
        Endpoint("/publish", project.publish),
        Endpoint("/project", by_action(get=project.get, save=project.save, delete=project.delete)),
        Endpoint("/project/membership", by_action(get=perm.memberships.get, save=perm.memberships.save), MEMBERS),
        Endpoint("/group", by_action(get=group.get, save=group.save, delete=group.delete)),
        Endpoint("/group/access", group.save_access),
        Endpoint("/group/tags", group.save_tags),
        Endpoint("/accessKey", by_action(get=key.get, save=key.save, delete=key.delete)),
        Endpoint("/roles", by_action(get=perm.roles.get, save=perm.roles.save, delete=perm.roles.delete), SCHEMA_BODY),
        Endpoint("/meta/schema", by_action(get=perm.schemas.get, save=perm.schemas.save), SCHEMA_BODY),
        Endpoint("/meta/data", by_action(get=perm.user_data.get, save=perm.user_data.save), SCHEMA_BODY),
        Endpoint("/check", perm.checks.check),
        Endpoint("/audit", perm.audit.read),
    )


def permission_routes(perm: Permissions, find_signing_pem: Callable[[str], str | None]) -> Blueprint:
    routes = Blueprint("permissions", __name__, url_prefix="/api/permissions")
    for endpoint in endpoint_table(perm.endpoints):
        name = endpoint.path.strip("/").replace("/", "_")
        routes.add_url_rule(endpoint.path, endpoint=name, view_func=_view(perm, endpoint), methods=["POST"])

    @routes.get("/application/publicKeys/<app_id>")
    async def public_keys(app_id: str) -> Response:
        try:
            application_id = read_application_key(app_id, ("appID",))
        except FieldError:
            raise NotFound("application not found") from None
        return reply({"status": "OK", "keys": await perm.application_keys.published(application_id)})

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
        scheme, _, key = current_request().headers.get("Authorization", "").partition(" ")
        access_key = key.strip() if scheme.lower() == "bearer" else ""
        return reply({"status": "OK", "jwt": await exchange.renew(access_key, form.jwt, form.factor, client_address())})

    return routes


def _view(perm: Permissions, endpoint: Endpoint) -> Callable[[], Awaitable[Response]]:
    rule = ENDPOINT_RULES[endpoint.path]

    async def view() -> Response:
        limit = endpoint.limit
        fields = (await read_body(forms=False, max_bytes=limit.max_bytes, max_values=limit.max_values)).fields
        if current_request().query_string:
            fields = _with_query_options(fields)
        credentials, application_id = await _credentials(perm.addresses, rule, fields)
        demanded = demanded_revision() if rule.asks_questions else 0
        lookup = None
        if await perm.questions.can_read_ahead(demanded):
            lookup = await perm.read_ahead.begin(credentials, rule, application_id, fields)
        caller = await perm.callers.authenticate(credentials, rule, fields, lookup)
        if rule.subject is Subject.USER_DATA and caller.service_id is not None:
            fields = {"application_id": caller.service_id, **fields}
        facts = lookup.facts if lookup else None
        if rule.asks_questions:
            facts = await perm.questions.open(lookup, demanded)
        handled = PermissionRequest(fields, caller, current_request().headers.get("If-Match"), facts=facts)
        try:
            with await perm.request_limit.enter(endpoint.path, fields, caller):
                response = await endpoint.handler(handled)
        except Forbidden as error:
            raise (perm.callers.needs_second_factor(error) if caller.second_factor_missing else error) from None
        headers = revision_headers(facts.revision, demanded) if facts and rule.asks_questions else None
        return reply_json_bytes(response, headers=headers) if isinstance(response, bytes) else reply(response)

    return view


def _with_query_options(fields: dict[str, Any]) -> dict[str, Any]:
    """``?dry_run=1``, as in the management API, is ``options.dry_run``: it must not be taken for a real write."""
    value = current_request().args.get("dry_run", "0")
    if value not in QUERY_FLAGS:
        raise FieldError(("dry_run",), 'must be "0" or "1"')
    if not QUERY_FLAGS[value]:
        return fields
    options = validators.read_object(fields.get("options", {}), ("options",))
    return {**fields, "options": {**options, "dry_run": True}}


async def _credentials(
    addresses: SignedAddresses, rule: EndpointRule, fields: dict[str, Any]
) -> tuple[PresentedCredentials, int]:
    """Returns the credentials of the current request, and the application that it is about (0 for none).

    The address is that of the connection, or one signed with an access key of the application of the request.
    """
    headers = current_request().headers
    authorization = headers.get("Authorization", "")
    credentials = PresentedCredentials.collect(
        client_address(), authorization, text_header("Factor"), headers.get("Service-Jwt"), fields
    )
    service_jwt = credentials.service_jwt
    application_id = rule.application_of(fields, claimed_application_id(service_jwt) if service_jwt else 0)
    claimed = headers.get("Ip", _address_of(authorization))
    if claimed is None:
        return credentials, application_id
    signature = headers.get("Signature")
    resolved = await addresses.resolve(credentials.address, claimed, signature, (application_id,))
    if signature is not None and resolved != credentials.address:
        credentials = credentials._replace(address=resolved, address_signed_by=signing_key_id(signature))
    return credentials, application_id


def _address_of(authorization: str) -> str | None:
    """Returns the address that a server claims for its client with ``Authorization: Ip …``, in place of ``Ip: …``."""
    scheme, _, claimed = authorization.partition(" ")
    return claimed if scheme.lower() == "ip" else None
