"""Reads what is kept of the current request and of its answer."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import orjson
from werkzeug.exceptions import RequestEntityTooLarge

from sso.core.errors import ApiError
from sso.core.hidden_fields import RecordWithHiddenFields
from sso.core.jwt import InvalidToken, unverified_parts
from sso.core.net import client_networks
from sso.db.errors import DatabaseError
from sso.oauth.authorization.request import Parameters
from sso.oauth.clients.assertions import MAX_LENGTH
from sso.oauth.clients.authentication import client_credentials
from sso.oauth.errors import InvalidRedirectUri
from sso.oauth.recording.kept_fields import kept_error, kept_fields
from sso.web.body import InvalidBody, is_cheap, parse_body
from sso.web.request import MAX_BODY, UnknownClient, client_address, current_request

_SCHEMES = ("Basic", "Bearer", "DPoP")
_TYPES = ("application/x-www-form-urlencoded", "application/json")
_REPEATABLE = frozenset({"audience", "resource"})


class ObservedRequest(RecordWithHiddenFields, frozen=True, dict=True):
    """A request as it was sent. It is parsed only if it may be one of a recorded client."""

    hidden_fields = frozenset({"raw", "authorization"})

    method: str
    network: str
    raw: bytes = b""  # the query of a GET, otherwise the body
    content_type: str = ""
    authorization: tuple[str, ...] = ()
    has_dpop: bool = False

    @cached_property
    def fields(self) -> Mapping[str, Any]:
        """The parameters of the query or of the body; none if they are malformed or expensive to parse."""
        if self.method == "GET":
            return _query_fields(Parameters.read(self.raw))
        if not is_cheap(self.raw):
            return {}
        try:
            return parse_body(self.raw, self.content_type, repeatable=_REPEATABLE).fields
        except InvalidBody:
            return {}

    @cached_property
    def client_id(self) -> str:
        """The client that the request names, which everybody can do; "" if it names none."""
        client_id, assertion = (_text(self.fields.get(name)) for name in ("client_id", "client_assertion"))
        try:
            if assertion:
                return _text(unverified_parts(assertion, MAX_LENGTH)[1].get("sub"))
            return client_credentials(self.authorization, client_id, "").client_id
        except (InvalidToken, ApiError):
            return client_id

    @property
    def redirect_uri(self) -> str:
        return _text(self.fields.get("redirect_uri"))

    def content(self, client_id: str) -> dict[str, Any]:
        """Returns what is kept of the request of this client."""
        content: dict[str, Any] = {"method": self.method, "parameters": kept_fields(self.fields, client_id)}
        if self.authorization:
            scheme = self.authorization[0].partition(" ")[0].lower()
            content["authorization"] = next((name for name in _SCHEMES if name.lower() == scheme), "other")
        if media_type := self.content_type.partition(";")[0].strip().lower():
            content["content_type"] = media_type if media_type in _TYPES else "other"
        return content | {"dpop": self.has_dpop}


async def observe_request(*, with_body: bool = True) -> ObservedRequest:
    """Reads the current request. Its handler can read the body again."""
    request = current_request()
    raw = request.query_string
    if request.method != "GET":
        raw = await _body() if with_body else b""
    headers = request.headers
    return ObservedRequest(
        request.method,
        sender_network(),
        raw,
        headers.get("Content-Type", ""),
        tuple(headers.getlist("Authorization")),
        "DPoP" in headers,
    )


def sender_network() -> str:
    """Returns the network that counts as one sender: an IPv4 address, or an IPv6 site, which has many networks."""
    try:
        network, site = client_networks(client_address())
    except UnknownClient:
        return ""
    return str(site or network)


async def _body() -> bytes:
    body: Any = current_request().body  # type: ignore[union-attr]  # requests have one, unlike WebSockets
    body.limit(MAX_BODY)  # no endpoint accepts more: what is read up to here, its handler reads again
    try:
        raw: bytes = await body
    except RequestEntityTooLarge:
        return b""
    return raw


def _query_fields(parameters: Parameters | None) -> dict[str, Any]:
    if parameters is None:
        return {}
    lists = {
        name.decode(errors="replace"): [value.decode(errors="replace") for value in values]
        for name, values in parameters.values.items()
    }
    return {name: values[0] if len(values) == 1 else values for name, values in lists.items()}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


async def observed_answer(response: Any, authorization_answer: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns what is kept of an answer: JSON, the answer to an authorization request, or a page."""
    answer: dict[str, Any] = {"status": response.status_code}
    if authorization_answer is not None:
        return answer | dict(authorization_answer)
    if response.mimetype != "application/json":
        return answer | {"kind": "page"}
    members = orjson.loads(await response.get_data())
    return answer | {"kind": "json", "members": kept_fields(members, _text(members.get("client_id")))}


def observed_error(error: Exception, kind: str) -> dict[str, Any]:
    """Returns what is kept of an error that is answered later. The text of a page is for users, the reason is not."""
    if isinstance(error, DatabaseError):
        return {"status": 503, "kind": kind}
    if not isinstance(error, ApiError):
        return {"status": getattr(error, "code", 500), "kind": kind}
    is_for_users = isinstance(error, InvalidRedirectUri)
    text = error.reason if is_for_users else str(error.recorded_message or error.message)
    return {"status": error.status, "kind": kind, "members": kept_error(error.code, text)}
