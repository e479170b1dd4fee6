"""The answer of a passkey, as the form field ``credential`` contains it: the JSON of the WebAuthn specification."""

from dataclasses import dataclass
from typing import Any

import orjson

from sso.accounts.passkeys.challenges import decode_base64url

MAX_CREDENTIAL_ID = 1023  # bytes, by the specification
TRANSPORTS = frozenset({"usb", "nfc", "ble", "smart-card", "hybrid", "internal"})


class InvalidPasskey(Exception):
    """The answer is malformed, or the passkey, its signature or its challenge are not accepted."""


@dataclass(frozen=True)
class PasskeyAnswer:
    """What can be read before the signature is verified."""

    text: str
    credential_id: bytes
    challenge: bytes
    user_handle: bytes | None
    transports: tuple[str, ...]


def parse_answer(text: str) -> PasskeyAnswer:
    """Raises InvalidPasskey if the text does not have the expected form."""
    try:
        credential = _object(orjson.loads(text))
        response = _object(credential.get("response"))
        credential_id = decode_base64url(credential.get("rawId"))
        client_data = _object(orjson.loads(decode_base64url(response.get("clientDataJSON"))))
        handle = response.get("userHandle")
        transports = response.get("transports", [])
        answer = PasskeyAnswer(
            text,
            credential_id,
            decode_base64url(client_data.get("challenge")),
            decode_base64url(handle) if handle else None,
            tuple(name for name in sorted(TRANSPORTS) if isinstance(transports, list) and name in transports),
        )
    except (TypeError, ValueError):
        raise InvalidPasskey from None
    if not 0 < len(credential_id) <= MAX_CREDENTIAL_ID:
        raise InvalidPasskey
    return answer


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("expected an object")
    return value
