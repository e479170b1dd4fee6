"""Describes the endpoints at which clients register themselves."""

from sso.oauth.registration.metadata import ClientMetadata
from sso.oauth.registration.routes import REGISTER, REGISTERED
from sso.web.api_description import STRING, ApiBody, ApiOperation, ApiResponse, ok, properties

TAG = "OAuth and OpenID Connect"
_EXAMPLE = {"redirect_uris": ["https://tool.example.net/callback"], "client_name": "Build Helper"}
_CLIENT = properties(
    ("client_id", "redirect_uris", "registration_access_token", "registration_client_uri"),
    client_id=STRING,
    client_secret=STRING,
    redirect_uris={"type": "array", "items": STRING},
    client_name=STRING,
    approved={"type": "boolean"},
    registration_access_token=STRING,
    registration_client_uri=STRING,
)
_ANSWER = {
    "client_id": "r-7ZkW3mWcX1Ue0JtQf8yLRA",
    "approved": False,
    "registration_access_token": "mF_9.B5f-4.1JqM",
    "registration_client_uri": "https://sso.example.com/proxy/oauth/register/r-7ZkW3mWcX1Ue0JtQf8yLRA",
    **_EXAMPLE,
}
_NO_STORE = {"Cache_Control": "no-store"}
_TOKEN = (("registrationToken",),)
_OFF = "Answers 404 while `SSO_CLIENT_REGISTRATION` is `off`."

REGISTRATION_OPERATIONS = (
    ApiOperation(
        "POST",
        REGISTER,
        TAG,
        "Register a client",
        {201: ok("The client (RFC 7591).", _CLIENT, _ANSWER, **_NO_STORE)},
        f"With an initial access token, or without one if an administrator has to approve the client. {_OFF}",
        (),
        ApiBody(ClientMetadata, examples={"tool": _EXAMPLE}),
        (401, 404),
        (*_TOKEN, ()),
    ),
    ApiOperation(
        "GET",
        REGISTERED,
        TAG,
        "Read the registration of a client",
        {200: ok("The client (RFC 7592).", _CLIENT, _ANSWER, **_NO_STORE)},
        _OFF,
        errors=(401, 404),
        security=_TOKEN,
    ),
    ApiOperation(
        "PUT",
        REGISTERED,
        TAG,
        "Change the registration of a client",
        {200: ok("The client.", _CLIENT, _ANSWER, **_NO_STORE)},
        "Replaces the metadata. A change of what users see, or where they are sent, needs a new approval.",
        (),
        ApiBody(ClientMetadata, examples={"tool": {"client_id": _ANSWER["client_id"], **_EXAMPLE}}),
        (401, 404, 409),
        _TOKEN,
    ),
    ApiOperation(
        "DELETE",
        REGISTERED,
        TAG,
        "Delete the registration of a client",
        {204: ApiResponse("The client is deleted.")},
        errors=(401, 404),
        security=_TOKEN,
    ),
)
