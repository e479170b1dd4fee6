"""The management API for the operator of this machine, who has every right.

Commands call it in their own process, or through the operator's socket of a running service (``sso/serve``). It is not
part of the application that serves HTTP, so no request from a network or a reverse proxy reaches it.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import orjson

from sso.admin.caller import AdminCaller
from sso.admin.request import AdminRequest, AdminRoute, DeleteQuery, field_members, with_override
from sso.admin.rights import ALL_RIGHTS
from sso.admin.wiring import ManagementApi
from sso.core.errors import ApiError, NotFound
from sso.core.operator_call import OperatorAnswer, OperatorCall, Progress
from sso.db.clock import DatabaseClock
from sso.perm.caller import Caller
from sso.web.body import ParsedBody, parse_body
from sso.web.error_format import ErrorFormat, error_body
from sso.web.error_response import to_error_response

PREFIX = "/api/admin"
MAX_BODY = 1 << 30  # bytes and values: `sso apply` reads documents of many users


class OperatorApi:
    def __init__(self, management: ManagementApi, clock: DatabaseClock) -> None:
        self._clock = clock
        routes = sorted(management.routes, key=lambda route: route.path.count("<"))  # names before variables
        self._routes = [(route.path.split("/"), route) for route in routes]

    async def respond(self, call: OperatorCall, progress: Progress) -> OperatorAnswer:
        """Answers as the management API does, without its rate limits and shares of the database."""
        try:
            route, path = self._find(call.method, call.path)
            response = await route.respond(self._request(route, path, call, progress))
        except ApiError as error:
            return _refusal(error.status, error.code, error.message, error.extra | field_members(error))
        members = {"status": "OK", **response.members}
        return OperatorAnswer(response.status, response.headers.get("ETag"), orjson.dumps(members))

    async def serve(self, call: OperatorCall, progress: Progress) -> OperatorAnswer:
        """Like `respond`, with an answer to every error, as the HTTP server has."""
        try:
            return await self.respond(call, progress)
        except Exception as error:
            response = to_error_response(error)
            return _refusal(response.status, response.code, response.message, response.extra)

    def _find(self, method: str, path: str) -> tuple[AdminRoute, dict[str, str]]:
        """Returns the route and the variables of the path. Raises NotFound."""
        given = path.removeprefix(PREFIX).split("/") if path.startswith(f"{PREFIX}/") else []
        for pattern, route in self._routes:
            if route.method == method and not route.waits and len(pattern) == len(given):
                pairs = list(zip(pattern, given, strict=True))
                if all(name == text or (name.startswith("<") and text) for name, text in pairs):
                    return route, {name[1:-1]: unquote(text) for name, text in pairs if name.startswith("<")}
        raise NotFound

    def _request(self, route: AdminRoute, path: dict[str, str], call: OperatorCall, progress: Progress) -> AdminRequest:
        query = route.read_query(path, {name: str(value) for name, value in call.query.items()})
        sent = ParsedBody({})
        if call.body:
            sent = parse_body(call.body, "application/json", max_bytes=MAX_BODY, max_values=MAX_BODY)
        if isinstance(query, DeleteQuery):
            query = with_override(query, sent)
        body = route.read_body(path, sent)
        return AdminRequest(self._caller(call.operator), path, query, body, call.if_match, progress=progress)

    def _caller(self, operator: str) -> AdminCaller:
        now = int(self._clock.now())
        caller = Caller(
            "", None, now=now, has_factor=True, in_management=True, is_operator=True, operator=operator or "unknown"
        )
        return AdminCaller(caller.actor, ALL_RIGHTS, frozenset(), is_root=True, permissions=caller)


def _refusal(status: int, code: str, message: str, extra: Mapping[str, Any]) -> OperatorAnswer:
    return OperatorAnswer(status, body=orjson.dumps(error_body(ErrorFormat.ENVELOPE, code, message, extra)))
