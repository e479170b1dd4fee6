"""Describes the device authorization grant (RFC 8628)."""

from sso.device.authorization import PAGE as CODE_PAGE
from sso.device.routes import PATH, DeviceRequest
from sso.oauth.api_operations import CLIENT_AUTHENTICATION, TAG
from sso.web.api_description import STRING, ApiBody, ApiOperation, form, ok, page, properties

_CODES = properties(
    ("device_code", "user_code", "verification_uri", "expires_in"),
    device_code=STRING,
    user_code=STRING,
    verification_uri=STRING,
    verification_uri_complete=STRING,
    expires_in={"type": "integer"},
    interval={"type": "integer"},
    match={"type": ["string", "array"], "items": STRING, "description": "Words that the page shows as well."},
)
_EXAMPLE = {
    "device_code": "GmRhm…",
    "user_code": "WDJB-MJHT",
    "verification_uri": "https://sso.example.com/device",
    "verification_uri_complete": "https://sso.example.com/device?user_code=WDJB-MJHT",
    "expires_in": 600,
    "interval": 5,
}

OPERATIONS = (
    ApiOperation(
        "POST",
        PATH,
        TAG,
        "Start the sign-in of a device",
        {200: ok("The codes. The user opens the address; the device polls the token endpoint.", _CODES, _EXAMPLE)},
        "",
        (),
        ApiBody(DeviceRequest, examples={"public client": {"client_id": "console", "scope": "openid offline_access"}}),
        (401, 403, 429),
        CLIENT_AUTHENTICATION,
    ),
    page(CODE_PAGE, TAG, "Ask for the code that a device shows", "user_code", errors=(404,)),
    form(CODE_PAGE, TAG, "Find the sign-in of the device", "user_code", errors=(403, 404)),
)
