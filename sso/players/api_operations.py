"""Describes the sign-in of guests."""

from sso.accounts.account_page.api_operations import CONFIRMATION, SIGNED_IN, TAG
from sso.accounts.api_operations import (
    ADDRESS_HEADERS,
    AUTHENTICATION_DATA,
    LOGIN_EXAMPLE,
    LOGIN_TAG,
    PAGES_TAG,
    SERVICE_JWT_HEADER,
)
from sso.players.routes import SIGNATURE_HEADER, GuestFields
from sso.upstream.recent_login import CONFLICT_PATH
from sso.web.api_description import ApiBody, ApiOperation, ApiParameter, form, ok, page

_EXAMPLE = {
    "public_key": "MCowBQYDK2VwAyEA…",
    "ts": 1794700000,
    "nonce": "1c7a4e9b0d3f5a62",
    "factor": "device-1",
    "gapp_id": 100,
}

OPERATIONS = (
    ApiOperation(
        "POST",
        "/proxy/api/guest",
        LOGIN_TAG,
        "Sign in with a key of the player's device",
        {
            200: ok(
                "Tokens of the user.",
                AUTHENTICATION_DATA,
                {**LOGIN_EXAMPLE, "auth": "guest", "guest": True, "nick": "Guest 1001", "tags": "guest"},
            )
        },
        "The first request with a key creates a guest; later ones sign the same user in. A wrong signature, a `ts` "
        "that is more than 300 seconds off and a repeated `nonce` get 403 with the id of a record. 404 if guests are "
        "off.",
        (
            ApiParameter(
                SIGNATURE_HEADER,
                "Base64 of the signature over the body: Ed25519, ECDSA with SHA-256 in DER, or RSA PKCS#1 v1.5 with "
                "SHA-256.",
                "header",
                required=True,
            ),
            *ADDRESS_HEADERS,
            SERVICE_JWT_HEADER,
        ),
        ApiBody(GuestFields, examples={"guest": _EXAMPLE}),
        (401, 403, 404, 429),
    ),
    page(CONFLICT_PATH, PAGES_TAG, "Ask about a store account that belongs to another account", "gsid"),
    form(f"{CONFLICT_PATH}/move", PAGES_TAG, "Move the link to the other user", "gsid", errors=(403, 409)),
    form(f"{CONFLICT_PATH}/merge", PAGES_TAG, "Merge the accounts", "gsid", errors=(403, 409)),
    form(
        "/account/keys/remove",
        TAG,
        "Remove the key of a device",
        "id",
        *CONFIRMATION,
        errors=(403, 409, 422),
        security=SIGNED_IN,
    ),
)
