"""The answer of a passkey, as the form field ``credential`` contains it: the JSON of the WebAuthn specification."""

from collections.abc import Mapping
from typing import Any

import orjson
from msgspec import Struct

from sso.accounts.passkeys.challenges import decode_base64url

MAX_ANSWER = 24 * 1024  # characters: an attestation object of 8 kB, a long credential id and the client data
MAX_CREDENTIAL_ID = 1023  # bytes, by the specification
MAX_CLIENT_DATA = 2048  # bytes
TRANSPORTS = frozenset({"usb", "nfc", "ble", "smart-card", "hybrid", "internal"})


class InvalidPasskey(Exception):
    """The answer is malformed, or the passkey, its signature or its challenge are not accepted."""


class PasskeyAnswer(Struct, frozen=True):
    """What can be read before the signature is verified."""

    credential_id: bytes
    client_data_json: bytes
    client_data: Mapping[str, Any]
    challenge: bytes
    user_handle: bytes | None
    transports: tuple[str, ...]
    response: Mapping[str, Any]

    def response_bytes(self, name: str) -> bytes:
        """Returns a member of the response. Raises TypeError or ValueError if it is not base64url."""
        return decode_base64url(self.response.get(name))

    def check_page(self) -> None:
        """Raises InvalidPasskey if the page was inside a page of another site, which may deceive the user."""
        if self.client_data.get("crossOrigin", False) is not False or "topOrigin" in self.client_data:
            raise InvalidPasskey


def parse_answer(text: str) -> PasskeyAnswer:
    """Raises InvalidPasskey if the text does not have the expected form."""
    if len(text) > MAX_ANSWER:
        raise InvalidPasskey
    try:
        credential = _object(orjson.loads(text))
        response = _object(credential.get("response"))
        credential_id = decode_base64url(credential.get("rawId"))
        client_data_json = decode_base64url(response.get("clientDataJSON"))
        client_data = _object(orjson.loads(client_data_json))
        handle = response.get("userHandle")
        transports = response.get("transports", [])
        answer = PasskeyAnswer(
            credential_id,
            client_data_json,
            client_data,
            decode_base64url(client_data.get("challenge")),
            decode_base64url(handle) if handle else None,
            tuple(name for name in sorted(TRANSPORTS) if isinstance(transports, list) and name in transports),
            response,
        )
    except (TypeError, ValueError):
        raise InvalidPasskey from None
    if not 0 < len(credential_id) <= MAX_CREDENTIAL_ID or len(client_data_json) > MAX_CLIENT_DATA:
        raise InvalidPasskey
    return answer


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("expected an object")
    return value
