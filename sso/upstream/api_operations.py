"""Describes the sign-in with tickets of stores, and the pages of sign-in with other providers."""

from sso.accounts.account_page.api_operations import CONFIRMATION, SIGNED_IN, TAG
from sso.accounts.api_operations import (
    ADDRESS_HEADERS,
    AUTHENTICATION_DATA,
    LOGIN_EXAMPLE,
    LOGIN_TAG,
    PAGES_TAG,
    SERVICE_JWT_HEADER,
)
from sso.upstream.recent_login import LINK_PATH
from sso.upstream.tickets.routes import TicketRequest
from sso.web.api_description import STRING, ApiBody, ApiOperation, form, ok, page

_PROBLEMS = (401, 403, 404, 409)
_FORM_PROBLEMS = (403, 404, 409, 422)

_GAME_CENTER = {
    "player_id": "T:_0123456789abcdef0123456789abcdef",
    "public_key_url": "https://static.gc.apple.com/public-key/gc-prod-10.cer",
    "timestamp": 1794700000000,
    "salt": "c2FsdA==",
    "signature": "c2lnbmF0dXJl…",
    "name": "Ann",
}
_TICKET_DATA = {
    **AUTHENTICATION_DATA,
    "properties": AUTHENTICATION_DATA["properties"]
    | {
        "auth": {**STRING, "description": "The id of the provider."},
        "created": {"type": "boolean", "description": "Whether the ticket has created the user."},
    },
}

OPERATIONS = (
    ApiOperation(
        "POST",
        "/proxy/api/ticket",
        LOGIN_TAG,
        "Sign in with the ticket of a store",
        {200: ok("Tokens of the user.", _TICKET_DATA, LOGIN_EXAMPLE | {"auth": "steam-game", "created": True})},
        "A ticket works once. 401: the ticket is wrong, or was used; or, with `otp` in the answer, a second factor is "
        "missing: send the same ticket again with `otp`. 403: no account is linked, and the provider creates none. "
        "409: with `link`, the store account is linked to another account. "
        "503: the store does not answer; send the same ticket again later.",
        (*ADDRESS_HEADERS, SERVICE_JWT_HEADER),
        ApiBody(
            TicketRequest,
            examples={
                "Steam": {"provider": "steam-game", "ticket": "140000004f2a…", "factor": "device-1"},
                "Google Play": {"provider": "google-play", "ticket": "4/0AbC…", "factor": "device-1"},
                "Game Center": {"provider": "game-center", "ticket": _GAME_CENTER, "factor": "device-1"},
                "ID token": {"provider": "epic", "ticket": {"id_token": "eyJhbGciOi…", "nonce": "n-1"}},
            },
        ),
        (401, 403, 409),
    ),
    page("/login/upstream/<provider_id>", PAGES_TAG, "Go to another provider", "next", errors=_PROBLEMS),
    page(
        "/login/upstream/<provider_id>/callback",
        PAGES_TAG,
        "Return from another provider",
        "state",
        "code",
        "error",
        errors=_PROBLEMS,
    ),
    page("/login/identity", PAGES_TAG, "Ask what to do with an identity without an account", errors=(404,)),
    form(
        "/login/identity/create",
        PAGES_TAG,
        "Create an account for the identity",
        "identity",
        "nick",
        errors=_FORM_PROBLEMS,
    ),
    page(LINK_PATH, PAGES_TAG, "Ask whether to link the identity", errors=(404,)),
    form(LINK_PATH, PAGES_TAG, "Link the identity with the account", "identity", errors=(403, 404, 409)),
    form(
        "/account/identities/link",
        TAG,
        "Link another provider",
        "provider",
        *CONFIRMATION,
        errors=_FORM_PROBLEMS,
        security=SIGNED_IN,
    ),
    form(
        "/account/identities/unlink",
        TAG,
        "Unlink another provider",
        "id",
        *CONFIRMATION,
        errors=_FORM_PROBLEMS,
        security=SIGNED_IN,
    ),
)
