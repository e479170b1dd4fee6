"""The options that a page gives to the browser, in the JSON form of the WebAuthn specification."""

from collections.abc import Sequence
from typing import Any

import orjson
from markupsafe import Markup

from sso.accounts.model import User
from sso.accounts.passkeys.challenges import CHALLENGE_S, encode_base64url
from sso.accounts.passkeys.public_key import ALGORITHMS
from sso.accounts.passkeys.relying_party import RelyingParty
from sso.accounts.passkeys.store import Passkey

# The content of a script element is not unescaped, so characters that could end it are written as JSON escapes.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def registration_options(
    relying_party: RelyingParty, user: User, handle: bytes, challenge: bytes, existing: Sequence[Passkey]
) -> dict[str, Any]:
    """A passkey must be discoverable and verify its user, because it replaces the password as well."""
    return {
        "rp": {"id": relying_party.id, "name": relying_party.name},
        "user": {"id": encode_base64url(handle), "name": user.login, "displayName": user.nick or user.login},
        "challenge": encode_base64url(challenge),
        "pubKeyCredParams": [{"type": "public-key", "alg": number} for number in ALGORITHMS],
        "timeout": CHALLENGE_S * 1000,
        "excludeCredentials": _descriptors(existing),
        "authenticatorSelection": {
            "residentKey": "required",
            "requireResidentKey": True,
            "userVerification": "required",
        },
        "attestation": "none",
    }


def request_options(
    relying_party: RelyingParty, challenge: bytes, allowed: Sequence[Passkey], *, user_verification: bool
) -> dict[str, Any]:
    """The options for a user who is known already; the template of the sign-in form has its own."""
    return {
        "challenge": encode_base64url(challenge),
        "rpId": relying_party.id,
        "allowCredentials": _descriptors(allowed),
        "userVerification": "required" if user_verification else "preferred",
        "timeout": CHALLENGE_S * 1000,
    }


def _descriptors(passkeys: Sequence[Passkey]) -> list[dict[str, Any]]:
    return [
        {"type": "public-key", "id": encode_base64url(passkey.credential_id), "transports": list(passkey.transports)}
        for passkey in passkeys
    ]


def script_data(value: Any) -> Markup:
    return Markup(orjson.dumps(value).decode().translate(_ESCAPES))  # noqa: S704 - escaped above
