"""Describes the endpoints of game sessions, their WebSocket, and the pages on which players confirm."""

from sso.accounts.api_operations import ADDRESS_HEADERS, AUTHENTICATION_DATA, LOGIN_EXAMPLE, SERVICE_JWT_HEADER
from sso.gsid.model import GSID
from sso.gsid.routes import CloseGsidRequest, GetGsidRequest, GsidRequest
from sso.gsid.wiring import BASE
from sso.web.api_description import (
    STRING,
    ApiBody,
    ApiOperation,
    ApiParameter,
    ApiResponse,
    envelope,
    form,
    ok,
    page,
    properties,
)

TAG = "Game sessions"
_GSID = "0c7c0f0e-4f0e-4f5c-9d1f-6f8f2b0f7a11"
_INTEGER = {"type": "integer"}
_TIMES = {**_INTEGER, "description": "Unix seconds."}
_LINK_PARAMETERS = ("app_id", "gapp_id", "distr", "meta", "lang")

# How a game proves that the session is its own: by Location, and by its address or a signature.
_PROOF = (
    ApiParameter("Location", "The URL that getGsid returned.", "header"),
    ApiParameter("Location", "The same, as a parameter."),
    ApiParameter("Public-Key", "The public key of the game client.", "header"),
    ApiParameter("Request-Sign", "The signature of the body with that key.", "header"),
    *ADDRESS_HEADERS,
)
_REGISTERED = {"gsid": {**STRING, "pattern": f"^{GSID.pattern}$"}, "ts": _TIMES, "started": _TIMES}
_LAST_SEEN = {**_INTEGER, "description": "The last heartbeat of the WebSocket, in Unix seconds; 0 without one."}
_SESSION = {**_REGISTERED, "last_seen": _LAST_SEEN}
_POLL = {
    "anyOf": [
        {
            **AUTHENTICATION_DATA,
            "title": "Signed in",
            "properties": {**AUTHENTICATION_DATA["properties"], **_SESSION},
        },
        properties(("status", "delay"), status={"enum": ["RETRY"]}, delay=_INTEGER, **_SESSION)
        | {"title": "Poll again after `delay` seconds"},
        properties(("status",), status={"enum": ["CANCELLED"]}, **_SESSION) | {"title": "Cancelled"},
        properties(("status", "error"), status={"enum": ["ERROR"]}, error=STRING) | {"title": "Ended"},
    ]
}
_ENDED = properties(("status",), status={"enum": ["OK", "ERROR"]}, gsid=STRING, error=STRING)
_INFO = properties(
    distr=STRING,
    factor=STRING,
    app_id=_INTEGER,
    gapp_id=_INTEGER,
    ip={**STRING, "description": "The address of the client that has registered the session."},
    created=_TIMES,
    last_seen=_LAST_SEEN,
    state={**STRING, "enum": ["", "Success", "Error"], "description": "The `status` of closeGsid; empty before."},
)
_VIOLATION = (403,)
_PAGE_ERRORS = (403, 404, 410)

OPERATIONS = (
    ApiOperation(
        "POST",
        f"{BASE}/getGsid",
        TAG,
        "Start a sign-in from a game",
        {
            200: ok(
                "The session. Show its link, `/?gsid=…`, and its match words to the player.",
                envelope(("gsid", "expires_in"), expires_in=_INTEGER, match=STRING, **_REGISTERED),
                {
                    "status": "OK",
                    "gsid": _GSID,
                    "ts": 1794700000,
                    "started": 1794700000,
                    "expires_in": 120,
                    "match": "amber falcon",
                },
                Location="the secret URL that proves later requests",
            )
        },
        "",
        (*ADDRESS_HEADERS, SERVICE_JWT_HEADER, ApiParameter("Public-Key", "The key of the game client.", "header")),
        ApiBody(GetGsidRequest, examples={"game": {"factor": "device-1", "gapp_id": 100}}, required=False),
        (401, 403),
    ),
    ApiOperation(
        "POST",
        f"{BASE}/getGsidResult",
        TAG,
        "Wait for the result of a sign-in",
        {
            200: ok(
                "The tokens, once; or poll again.",
                _POLL,
                {
                    **LOGIN_EXAMPLE,
                    "auth": "gsid",
                    "gsid": _GSID,
                    "ts": 1794700030,
                    "started": 1794700000,
                    "last_seen": 0,
                },
            )
        },
        "The request is held until the player has decided. The tokens are returned once; a repeated request gets 403.",
        _PROOF,
        ApiBody(GsidRequest, examples={"poll": {"gsid": _GSID}}),
        _VIOLATION,
    ),
    ApiOperation(
        "POST",
        f"{BASE}/closeGsid",
        TAG,
        "Close a session",
        {200: ok("The session is closed.", _ENDED, {"status": "OK", "gsid": _GSID})},
        "",
        _PROOF,
        ApiBody(CloseGsidRequest, examples={"close": {"gsid": _GSID, "status": "Success"}}),
        _VIOLATION,
    ),
    ApiOperation(
        "POST",
        f"{BASE}/info",
        TAG,
        "Read a session, from addresses of SSO_INFO_ALLOW",
        {
            200: ok(
                "The session.",
                envelope(("session",), session=_INFO),
                {
                    "status": "OK",
                    "session": {
                        "distr": "store",
                        "factor": "device-1",
                        "app_id": 0,
                        "gapp_id": 100,
                        "ip": "192.0.2.1",
                        "created": 1794700000,
                        "last_seen": 0,
                        "state": "",
                    },
                },
            )
        },
        "",
        _PROOF,
        ApiBody(GsidRequest, examples={"info": {"gsid": _GSID}}),
        _VIOLATION,
    ),
    ApiOperation(
        "GET",
        "/ws/gameSession/refresh/<gsid>",
        TAG,
        "Follow a session with a WebSocket",
        {101: ApiResponse("The WebSocket is open. It sends heartbeats, stages of the sign-in, and a close event.")},
        "A request without the headers of a WebSocket gets 404. Each message is a JSON object with `event`. The "
        'last one is `{"event": "close", "status", "error", …}`.',
        _PROOF[:4],
        None,
        (404, 405, 426),
    ),
    page("/game/<gsid>", TAG, "Ask the player to confirm the sign-in", *_LINK_PARAMETERS, errors=_PAGE_ERRORS),
    form("/game/<gsid>/continue", TAG, "Confirm the sign-in", *_LINK_PARAMETERS, errors=_PAGE_ERRORS),
    page("/game/<gsid>/deny", TAG, "Ask whether to stop the sign-in", *_LINK_PARAMETERS, errors=_PAGE_ERRORS),
    form("/game/<gsid>/deny", TAG, "Stop the sign-in", *_LINK_PARAMETERS, errors=_PAGE_ERRORS),
)
