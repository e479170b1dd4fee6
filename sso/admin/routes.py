"""The routes of the management API. Each authenticates the caller, checks the right, validates, and replies."""

from collections.abc import Awaitable, Callable
from typing import Any

from quart import Blueprint, Response, request

from sso.admin.errors import TooManyAdminRequests
from sso.admin.request import AdminRequest, AdminRoute
from sso.admin.wiring import ManagementApi
from sso.perm.caller import PresentedCredentials
from sso.web.body import InvalidBody, ParsedBody
from sso.web.request import client_address, read_body, text_header
from sso.web.request_model import validate
from sso.web.response import reply


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
        await management.authorize(caller, route)
        query = validate(route.query, ParsedBody(_query_fields(), is_form=True))
        body = await _read_body(route) if route.body else None
        if_match = request.headers.get("If-Match")
        response = await route.handler(AdminRequest(caller, path, query, body, if_match))
        return reply({"status": "OK", **response.members}, response.status, response.headers)

    return view


async def _read_body(route: AdminRoute) -> Any:
    assert route.body is not None
    body = await read_body(forms=False, require_type=not route.body_optional, **route.body_limit._asdict())
    return validate(route.body, body)


def _credentials() -> PresentedCredentials:
    authorization = request.headers.get("Authorization", "")
    return PresentedCredentials.collect(client_address(), authorization, text_header("Factor"), None, {})


def _query_fields() -> dict[str, Any]:
    fields = request.args.to_dict(flat=False)
    if repeated := [name for name, values in fields.items() if len(values) > 1]:
        raise InvalidBody(f"{repeated[0]}: must be given once")
    if any("\0" in name or "\0" in values[0] for name, values in fields.items()):
        raise InvalidBody("the query has a NUL character")
    return {name: values[0] for name, values in fields.items()}
