"""The parameter ``claims`` (OpenID Connect Core section 5.5): a client requests claims one by one. Pure.

Claims about the user are stored with the grant, by the token or answer that has them. ``sub`` and ``acr`` restrict who
signs in, and how; the other claims are in every ID token. Unknown claims are ignored.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from sso.core.untrusted_json import read_json
from sso.oauth.errors import AuthorizationError
from sso.oauth.tokens.claims import SCOPES_OF_CLAIMS

MAX_LENGTH = 4096
TARGETS = ("id_token", "userinfo")

Values = Sequence[Any] | None  # the values that are accepted; None: any
Requests = Mapping[str, Mapping[str, Any]]  # by claim: what is requested of it


class RequestedClaims(NamedTuple):
    stored: str = ""  # the JSON of the claims about the user, by target and name, with the values that are accepted
    sub: str | None = None
    acr_values: tuple[str, ...] = ()  # one of which is essential


def parse_claims(text: str | None) -> RequestedClaims:
    """Raises AuthorizationError if the parameter is malformed."""
    if text is None:
        return RequestedClaims()
    try:
        value = read_json(text)
    except ValueError as error:
        raise _malformed("claims", str(error)) from None
    members = _object(value, "claims")
    requests = {target: _requests(members.get(target), f"claims.{target}") for target in TARGETS}
    stored = {target: _user_claims(requests[target]) for target in TARGETS}
    return RequestedClaims(
        orjson.dumps(stored).decode() if any(stored.values()) else "",
        _subject(requests.values()),
        _acr_values(requests["id_token"].get("acr", {})),
    )


def _requests(value: Any, path: str) -> Requests:
    claims = {} if value is None else _object(value, path)
    return {name: _request(request, f"{path}.{name}") for name, request in claims.items()}


def _request(value: Any, path: str) -> dict[str, Any]:
    request = {} if value is None else _object(value, path)
    if not isinstance(request.get("essential", False), bool):
        raise _malformed(f"{path}.essential", "expected true or false")
    if not isinstance(request.get("values", []), list):
        raise _malformed(f"{path}.values", "expected a list")
    if "value" in request and "values" in request:
        raise _malformed(path, "expected value or values")
    return request


def _object(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _malformed(path, "expected a JSON object")
    return value


def _values(request: Mapping[str, Any]) -> Values:
    return [request["value"]] if "value" in request else request.get("values")


def _user_claims(requests: Requests) -> dict[str, Values]:
    return {name: _values(request) for name, request in requests.items() if name in SCOPES_OF_CLAIMS}


def _subject(targets: Any) -> str | None:
    """Returns the only user who may sign in."""
    subjects = {value for requests in targets for value in _texts(requests.get("sub", {}), "claims.sub")}
    if len(subjects) > 1:
        raise _malformed("claims.sub", "expected one value")
    return next(iter(subjects), None)


def _acr_values(request: Mapping[str, Any]) -> tuple[str, ...]:
    texts = _texts(request, "claims.id_token.acr")
    return tuple(texts) if request.get("essential") else ()


def _texts(request: Mapping[str, Any], path: str) -> list[str]:
    values = _values(request) or ()
    if not all(isinstance(value, str) and value.isprintable() and value and " " not in value for value in values):
        raise _malformed(path, "expected texts without spaces and control characters")
    return list(values)


def _malformed(path: str, expected: str) -> AuthorizationError:
    """The path may have any name that was sent."""
    return AuthorizationError("invalid_request", f"{path}: {expected}"[:200], recorded=f"claims: {expected}")
