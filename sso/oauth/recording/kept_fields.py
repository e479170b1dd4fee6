"""What is kept of a request and of its answer. This is a list of what may be kept: everything else is left out.

Of most values, known words are kept only. A secret that a developer sends under a wrong name is therefore not kept
either, and a stranger cannot write a text for the administrator who reads the recording.
"""

import re
from collections.abc import Mapping
from typing import Any, get_args
from urllib.parse import urlsplit

from sso.accounts.authentication_context import ACR_VALUES
from sso.core.service_token import SERVICE_SCOPES
from sso.oauth.clients.assertions import ASSERTION_TYPE
from sso.oauth.model import PROMPTS, RESPONSE_MODES, SCOPES, TOKEN_EXCHANGE, GrantType

MAX_ADDRESS, MAX_SCHEME = 200, 64
MAX_SEGMENT = 24  # characters of a part of a path; a longer one may be a secret
MAX_DESCRIPTION = 400

_TOKEN_TYPES = frozenset(
    f"urn:ietf:params:oauth:token-type:{name}"
    for name in ("access_token", "refresh_token", "id_token", "jwt", "saml1", "saml2")
)
# Parameters whose values are kept, word by word, with the words that are known.
WORDS: Mapping[str, frozenset[str]] = {
    "acr_values": frozenset(ACR_VALUES),
    "client_assertion_type": frozenset({ASSERTION_TYPE}),
    "code_challenge_method": frozenset({"S256", "plain"}),
    "display": frozenset({"page", "popup", "touch", "wap"}),
    "grant_type": frozenset({*get_args(GrantType), TOKEN_EXCHANGE, "password", "implicit"}),
    "issued_token_type": _TOKEN_TYPES,
    "prompt": PROMPTS | {"create"},
    "requested_token_type": _TOKEN_TYPES,
    "response_mode": frozenset({*RESPONSE_MODES, "fragment", "jwt", "query.jwt", "form_post.jwt", "fragment.jwt"}),
    "response_type": frozenset({"code", "token", "id_token", "none"}),
    "scope": frozenset({*SCOPES, *SERVICE_SCOPES, "address", "phone"}),
    "subject_token_type": _TOKEN_TYPES,
    "token_type": frozenset({"Bearer", "DPoP"}),
    "token_type_hint": frozenset({"access_token", "refresh_token"}),
}
_NUMBERS = frozenset({"expires_in", "interval", "max_age", "wait"})
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_ADDRESSES = frozenset({"audience", "iss", "post_logout_redirect_uri", "redirect_uri", "resource"})
# Parameters of which only the length is kept.
_MEASURED = frozenset({
    "access_token", "actor_token", "claims", "client_assertion", "client_id", "client_secret", "code", "code_challenge",
    "code_verifier", "device_code", "dpop_jkt", "id_token", "id_token_hint", "login_hint", "nonce", "refresh_token",
    "request", "request_uri", "state", "subject_token", "token", "ui_locales", "user_code", "verification_uri",
    "verification_uri_complete",
})  # fmt: skip
# Members of answers about users: only that they are there.
_PRESENT = frozenset({
    "act", "acr", "amr", "aud", "auth_time", "cnf", "email", "email_verified", "exp", "iat", "jti", "locale", "name",
    "match", "nickname", "phone_number_verified", "phone_verified", "preferred_username", "sid", "status", "sub",
    "updated_at", "username",
})  # fmt: skip


def kept_fields(fields: Mapping[str, Any], client_id: str) -> dict[str, str]:
    """Returns the parameters or members of which something may be kept. The names of others may be secrets.

    ``client_id`` is the client that is recorded; another value of the parameter may be anything.
    """
    kept: dict[str, str] = {}
    others = 0
    for name, value in fields.items():
        if name == "client_id" and value == client_id:
            kept[name] = client_id
        elif name in WORDS:
            kept[name] = _known_words(value, WORDS[name])
        elif name in _NUMBERS:
            kept[name] = str(value) if _is_number(value) else "(not a number)"
        elif name in _ADDRESSES:
            kept[name] = " ".join(map(_address, value if isinstance(value, list) else [value]))[:MAX_ADDRESS]
        elif name in _MEASURED:
            kept[name] = _length(value)
        elif name in _PRESENT:
            kept[name] = "(not shown)"
        elif name == "active":
            kept[name] = "true" if value is True else "false"
        elif name not in ("error", "error_description"):
            others += 1
    return kept | ({"others": str(others)} if others else {})


def kept_error(code: str, description: str) -> dict[str, str]:
    """Returns the code and the text of an error, both of which this service has written."""
    return {"error": code} | ({"error_description": _printable(description[:MAX_DESCRIPTION])} if description else {})


def _known_words(value: Any, known: frozenset[str]) -> str:
    if not isinstance(value, str):
        return "(not one text)"
    words = value.split()
    texts = [word for word in dict.fromkeys(words) if word in known]
    if unknown := sum(word not in known for word in words):
        texts.append(f"({unknown} unknown word{'s'[: unknown != 1]})")
    return " ".join(texts) or "(empty)"


def _is_number(value: Any) -> bool:
    return _NUMBER.fullmatch(value) is not None if isinstance(value, str) else type(value) is int


def _length(value: Any) -> str:
    if not isinstance(value, str):
        return "(not one text)"
    return f"({len(value)} character{'s'[: len(value) != 1]})"


def _address(value: Any) -> str:
    """Returns an address without its user, query, fragment and long parts, where a site may have put a secret."""
    if not isinstance(value, str):
        return "(not one text)"
    try:
        parts = urlsplit(value)
        place = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "(not an address)"
    if not parts.scheme:
        return f"(not an address, {_length(value)[1:]}"
    if not place:
        return f"{parts.scheme[:MAX_SCHEME]}:…"
    path = "/".join(part if len(part) <= MAX_SEGMENT else "…" for part in parts.path.split("/"))
    more = "?…" if parts.query or parts.fragment else ""
    return _printable(f"{parts.scheme[:MAX_SCHEME]}://{place}{path}{more}"[:MAX_ADDRESS])


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "�" for character in text)
