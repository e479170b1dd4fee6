"""Reads what is kept of the current request and of its answer."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson
from werkzeug.exceptions import RequestEntityTooLarge

from sso.core.errors import ApiError
from sso.core.jwt import InvalidToken, unverified_parts
from sso.core.net import client_networks
from sso.db.errors import DatabaseError
from sso.oauth.clients.assertions import MAX_LENGTH
from sso.oauth.clients.authentication import client_credentials
from sso.oauth.errors import InvalidRedirectUri
from sso.oauth.recording.kept_fields import kept_error, kept_fields
from sso.web.body import InvalidBody, is_cheap, parse_body
from sso.web.request import MAX_BODY, UnknownClient, client_address, current_request

MAX_PARAMETERS = 100
_SCHEMES = ("Basic", "Bearer", "DPoP")
_TYPES = ("application/x-www-form-urlencoded", "application/json")


@dataclass(frozen=True)
class ObservedRequest:
    network: str
    client_id: str  # that the request names; "" if it names none
    redirect_uri: str
    content: dict[str, Any] = field(default_factory=dict)  # what is kept


async def observe_request() -> ObservedRequest:
    """Reads the current request. Its handler can read the body again."""
    request = current_request()
    headers = request.headers
    fields = dict(await _parameters())
    authorization = headers.getlist("Authorization")
    content: dict[str, Any] = {"method": request.method, "parameters": kept_fields(fields.items())}
    if authorization:
        scheme = authorization[0].partition(" ")[0]
        content["authorization"] = next((name for name in _SCHEMES if name.lower() == scheme.lower()), "other")
    if media_type := headers.get("Content-Type", "").partition(";")[0].strip().lower():
        content["content_type"] = media_type if media_type in _TYPES else "other"
    content["dpop"] = "DPoP" in headers
    redirect_uri = fields.get("redirect_uri")
    return ObservedRequest(
        _network(),
        _client_id(fields, authorization),
        redirect_uri if isinstance(redirect_uri, str) else "",
        content,
    )


def _network() -> str:
    try:
        return str(client_networks(client_address())[0])
    except UnknownClient:
        return ""


async def _parameters() -> list[tuple[str, Any]]:
    """Returns the parameters of the query, or of the body; none if they are malformed or expensive to parse."""
    request = current_request()
    try:
        if request.method == "GET":
            query = request.query_string.decode("latin-1")
            return parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
        body: Any = request.body  # type: ignore[union-attr]  # requests have one, unlike WebSockets
        body.limit(MAX_BODY)  # no endpoint accepts more: what is read up to here, its handler reads again
        raw = await body
        if not is_cheap(raw):
            return []
        parsed = parse_body(raw, request.headers.get("Content-Type"), repeatable=frozenset({"resource"}))
        return list(parsed.fields.items())
    except (RequestEntityTooLarge, InvalidBody, ValueError):
        return []


def _client_id(fields: dict[str, Any], authorization: list[str]) -> str:
    client_id, assertion = (str(fields.get(name, "")) for name in ("client_id", "client_assertion"))
    try:
        if assertion:
            return str(unverified_parts(assertion, MAX_LENGTH)[1].get("sub", ""))
        return client_credentials(authorization, client_id, "").client_id
    except (InvalidToken, ApiError):
        return client_id


async def observed_answer(response: Any) -> dict[str, Any]:
    """Returns what is kept of an answer: JSON, a redirect to the client, or a page."""
    answer: dict[str, Any] = {"status": response.status_code}
    if response.mimetype == "application/json":
        members = orjson.loads(await response.get_data())
        return answer | {"members": kept_fields(members.items()) | kept_error(members)}
    if location := response.headers.get("Location"):
        members = dict(parse_qsl(urlsplit(location).query, max_num_fields=MAX_PARAMETERS))
        return answer | {"redirect": True, "members": kept_fields(members.items()) | kept_error(members)}
    return answer | {"page": True}


def observed_error(error: Exception) -> dict[str, Any]:
    """Returns what is kept of an error that is answered later. The text of a page is for users, the reason is not."""
    if isinstance(error, DatabaseError):
        return {"status": 503}
    if not isinstance(error, ApiError):
        return {"status": getattr(error, "code", 500)}
    is_page = isinstance(error, InvalidRedirectUri)
    text = error.reason if is_page else str(error.message)
    members = kept_error({"error": error.code, "error_description": text})
    return {"status": error.status, "page": is_page, "members": members}
