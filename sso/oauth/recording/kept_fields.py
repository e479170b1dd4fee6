"""What is kept of a request and of its answer. This is a list of what may be kept: everything else is left out.

A secret that a developer sends under a wrong name is therefore not kept either.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

MAX_TEXT = 200  # characters of a value
MAX_DESCRIPTION = 400

# Parameters whose values are kept. None of them is secret, and none is about a person.
_VALUES = frozenset({
    "acr_values", "audience", "client_assertion_type", "client_id", "code_challenge_method", "display", "expires_in",
    "grant_type", "iss", "issued_token_type", "interval", "max_age", "prompt", "requested_token_type", "response_mode",
    "response_type", "scope", "subject_token_type", "token_type", "token_type_hint", "ui_locales",
})  # fmt: skip
_ADDRESSES = frozenset({"redirect_uri", "resource", "post_logout_redirect_uri"})  # kept without their queries
# Parameters of which only the length is kept.
_MEASURED = frozenset({
    "access_token", "actor_token", "claims", "client_assertion", "client_secret", "code", "code_challenge",
    "code_verifier", "device_code", "dpop_jkt", "id_token", "id_token_hint", "login_hint", "nonce", "refresh_token",
    "request", "request_uri", "state", "subject_token", "token", "user_code", "verification_uri",
    "verification_uri_complete",
})  # fmt: skip
# Members of answers about users: only that they are there.
_PRESENT = frozenset({
    "act", "acr", "amr", "aud", "auth_time", "cnf", "email", "email_verified", "exp", "iat", "jti", "locale", "name",
    "match", "nickname", "phone_number_verified", "phone_verified", "preferred_username", "sid", "status", "sub",
    "updated_at", "username",
})  # fmt: skip


def kept_fields(fields: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """Returns the parameters or members of which something may be kept. The names of others are secrets, perhaps."""
    kept: dict[str, str] = {}
    others = 0
    for name, value in fields:
        if name in _VALUES:
            kept[name] = _text(value)
        elif name in _ADDRESSES:
            kept[name] = " ".join(map(_without_query, value if isinstance(value, list) else [value]))[:MAX_TEXT]
        elif name in _MEASURED:
            length = len(value) if isinstance(value, str) else 0
            kept[name] = f"({length} character{'s'[: length != 1]})"
        elif name in _PRESENT:
            kept[name] = "(not shown)"
        elif name == "active":
            kept[name] = "true" if value is True else "false"
        else:
            others += 1
    return kept | ({"others": str(others)} if others else {})


def kept_error(fields: Mapping[str, Any]) -> dict[str, str]:
    """Returns the code and the text of an error, which this service has written."""
    return {
        name: _printable(fields[name][:MAX_DESCRIPTION])
        for name in ("error", "error_description")
        if isinstance(fields.get(name), str)
    }


def _without_query(address: Any) -> str:
    """Returns an address without its user, query and fragment, where a site may have put a secret."""
    try:
        parts = urlsplit(address if isinstance(address, str) else "")
        place = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "(not an address)"
    more = "?…" if parts.query or parts.fragment else ""
    return _text(f"{parts.scheme}://{place}{parts.path}{more}" if place else f"{parts.scheme}:…")


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else str(value) if isinstance(value, int) else "(not a text)"
    return _printable(text[:MAX_TEXT]) + ("…" if len(text) > MAX_TEXT else "")


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "�" for character in text)
