"""Describes the endpoints of OAuth 2.0 and OpenID Connect."""

from msgspec.structs import replace

from sso.oauth.grant_types.token_request import TokenRequest
from sso.oauth.logout import PARAMETERS as LOGOUT_PARAMETERS
from sso.oauth.logout_pages import PATH as LOGOUT
from sso.oauth.pages import AUTHORIZE_PATH, RESUME_PATH
from sso.oauth.registration.api_operations import REGISTRATION_OPERATIONS
from sso.oauth.registration.resource_metadata import METADATA_PATHS
from sso.oauth.routes import (
    DISCOVERY,
    INTROSPECT,
    PAR,
    REVOKE,
    TOKEN,
    USERINFO,
    ClientAuthenticationFields,
    IntrospectionRequest,
    RevokeRequest,
    UserinfoRequest,
)
from sso.web.api_description import (
    FORM_BODY,
    HTML,
    STRING,
    ApiBody,
    ApiOperation,
    ApiParameter,
    ApiResponse,
    form,
    ok,
    page,
    properties,
)

TAG = "OAuth and OpenID Connect"
# Besides these, a client may authenticate with fields of the body: client_secret, or client_assertion.
CLIENT_AUTHENTICATION = (("clientBasic",), ())
ACCESS_TOKEN = (("accessToken",), ("dpopToken", "dpopProof"))
DPOP = ApiParameter("DPoP", "A proof of possession (RFC 9449); the tokens are bound to its key.", "header")
_NO_STORE = {"Cache_Control": "no-store"}
_AUTHORIZATION = {
    "response_type": "Must be code.",
    "client_id": "The client.",
    "redirect_uri": "Where the browser returns to; must be registered.",
    "scope": "openid, and any of offline_access, email, profile, trust.",
    "state": "Returned unchanged.",
    "nonce": "Returned in the ID token.",
    "code_challenge": "PKCE challenge.",
    "code_challenge_method": "Must be S256.",
    "response_mode": "query or form_post.",
    "prompt": "none, login, consent or select_account.",
    "max_age": "The greatest age of the sign-in in seconds.",
    "login_hint": "The login that the form shows.",
    "id_token_hint": "An ID token of the expected user.",
    "ui_locales": "Languages of the pages.",
    "acr_values": "How the user must sign in, one of acr_values_supported. Several are separated by spaces.",
    "claims": "Claims that are requested one by one, as JSON (OpenID Connect Core section 5.5).",
    "resource": "A resource server (RFC 8707).",
    "dpop_jkt": "The thumbprint of the DPoP key.",
    "request_uri": "A pushed authorization request.",
}
_TOKENS = properties(
    ("access_token", "token_type", "expires_in"),
    access_token=STRING,
    token_type={"enum": ["Bearer", "DPoP"]},
    expires_in={"type": "integer"},
    id_token=STRING,
    refresh_token=STRING,
    scope=STRING,
    issued_token_type={**STRING, "description": "Of an exchanged token."},
)
_ID_TOKEN = properties(("id_token",), id_token=STRING, expires_in={"type": "integer"})
_TOKEN_EXAMPLES = {
    "authorization code": {
        "grant_type": "authorization_code",
        "code": "SplxlOBeZQQYbYS6WxSbIA",
        "redirect_uri": "https://site.example.com/callback",
        "code_verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
    },
    "refresh token": {"grant_type": "refresh_token", "refresh_token": "eyJhbGciOi…"},
    "service client": {"grant_type": "client_credentials", "client_id": "shop", "client_secret": "…"},
    "device": {
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
        "device_code": "GmRhm…",
        "client_id": "console",
        "wait": 30,
    },
    "token exchange": {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token": "mF_9.B5f-4.1JqM",
        "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "audience": ["chat"],
        "scope": "openid",
    },
}
_CLAIMS = properties(
    ("sub",), status=STRING, sub=STRING, email=STRING, email_verified={"type": "boolean"}, name=STRING, nickname=STRING
)
_AUTHORIZED = {
    200: ApiResponse("A page: sign-in, consent, or a form that posts the answer to the client.", STRING, HTML),
    302: ApiResponse("The answer to the client: `code`, or `error`.", headers={"Location": "the redirect URI"}),
    303: ApiResponse("The next page.", headers={"Location": "the address of the next page"}),
}
_CLIENT_ERRORS = (401, 403)

OPERATIONS = (
    ApiOperation(
        "GET",
        AUTHORIZE_PATH,
        TAG,
        "Start a sign-in to a site",
        _AUTHORIZED,
        "An error that the client may know is sent to its redirect URI; other errors are shown on a page.",
        [ApiParameter(name, text) for name, text in _AUTHORIZATION.items()],
        errors=(403,),
    ),
    ApiOperation(
        "POST",
        AUTHORIZE_PATH,
        TAG,
        "Start a sign-in to a site, with a form",
        {303: _AUTHORIZED[303]},
        "Redirects to the GET request with the same parameters.",
        body=ApiBody(
            properties(**{name: {**STRING, "description": text} for name, text in _AUTHORIZATION.items()}),
            (FORM_BODY,),
            {"request": {"response_type": "code", "client_id": "shop", "scope": "openid"}},
        ),
        errors=(415,),
    ),
    ApiOperation("GET", RESUME_PATH, TAG, "Continue a sign-in to a site", _AUTHORIZED, errors=(403, 404), is_page=True),
    ApiOperation(
        "POST",
        RESUME_PATH,
        TAG,
        "Answer the consent page",
        _AUTHORIZED,
        body=ApiBody(
            properties(csrf=STRING, decision={**STRING, "description": "allow, deny or other"}),
            (FORM_BODY,),
            {"allow": {"csrf": "the token of the page", "decision": "allow"}},
            required=False,
        ),
        errors=(401, 403, 404, 415),
        is_page=True,
    ),
    ApiOperation(
        "POST",
        TOKEN,
        TAG,
        "Get tokens",
        {
            200: ok(
                "The tokens.",
                _TOKENS,
                {"access_token": "mF_9.B5f-4.1JqM", "token_type": "Bearer", "expires_in": 3600, "id_token": "eyJhb…"},
                **_NO_STORE,
            )
        },
        "Grant types: authorization_code, refresh_token, client_credentials, device_code and token-exchange.",
        (DPOP, ApiParameter("Idempotency-Key", "Makes a repeated refresh return the same tokens.", "header")),
        ApiBody(TokenRequest, examples=_TOKEN_EXAMPLES),
        _CLIENT_ERRORS,
        (*CLIENT_AUTHENTICATION, ("strictBearer",)),
    ),
    ApiOperation(
        "POST",
        REVOKE,
        TAG,
        "Revoke a token",
        {200: ok("The token is revoked.", properties(status=STRING), {"status": "ok"}, **_NO_STORE)},
        "",
        (),
        ApiBody(RevokeRequest, examples={"token": {"token": "eyJhbGciOi…", "client_id": "shop"}}),
        _CLIENT_ERRORS,
        CLIENT_AUTHENTICATION,
    ),
    ApiOperation(
        "POST",
        INTROSPECT,
        TAG,
        "Check an access token",
        {
            200: ok(
                "The claims of the token, or that it is not active.",
                properties(("active",), active={"type": "boolean"}, sub=STRING, client_id=STRING, scope=STRING),
                {"active": True, "client_id": "shop", "sub": "1001", "exp": 1794703600, "scope": "openid"},
                **_NO_STORE,
            )
        },
        "For resource servers.",
        (),
        ApiBody(IntrospectionRequest, examples={"token": {"token": "mF_9.B5f-4.1JqM"}}),
        _CLIENT_ERRORS,
        CLIENT_AUTHENTICATION,
    ),
    ApiOperation(
        "POST",
        PAR,
        TAG,
        "Push an authorization request",
        {
            201: ok(
                "The request is stored.",
                properties(("request_uri", "expires_in"), request_uri=STRING, expires_in={"type": "integer"}),
                {"request_uri": "urn:ietf:params:oauth:request_uri:6esc_11A", "expires_in": 60},
                **_NO_STORE,
            )
        },
        "The body has the parameters of the authorization request and of client authentication.",
        (DPOP,),
        ApiBody(
            ClientAuthenticationFields,
            examples={
                "request": {
                    "client_id": "shop",
                    "response_type": "code",
                    "redirect_uri": "https://site.example.com/callback",
                    "scope": "openid",
                }
            },
        ),
        _CLIENT_ERRORS,
        CLIENT_AUTHENTICATION,
    ),
    *(
        ApiOperation(
            method,
            USERINFO,
            TAG,
            "Read the claims of the user",
            {200: ok("The claims.", _CLAIMS, {"status": "ok", "sub": "1001", "email": "ann@example.com"}, **_NO_STORE)},
            "",
            (),
            ApiBody(UserinfoRequest, (FORM_BODY,), {"token": {"access_token": "mF_9.B5f-4.1JqM"}}, required=False)
            if method == "POST"
            else None,
            (401,),
            ACCESS_TOKEN,
        )
        for method in ("GET", "POST")
    ),
    ApiOperation(
        "POST",
        "/proxy/oauth/exchange",
        TAG,
        "Exchange a user JWT for an ID token",
        {200: ok("The ID token.", _ID_TOKEN, {"id_token": "eyJhbGciOi…", "expires_in": 3600}, **_NO_STORE)},
        security=(("userJwt", "factor"),),
        errors=(401, 403),
    ),
    ApiOperation(
        "POST",
        "/proxy/oauth/exchangeToken",
        TAG,
        "Exchange an access token for a user JWT",
        {200: ok("The user JWT.", properties(("token",), token=STRING), {"token": "eyJhbGciOi…"}, **_NO_STORE)},
        security=(("accessToken",),),
        parameters=(ApiParameter("Factor", "The factor of the new JWT.", "header"),),
        errors=(401, 403),
    ),
    *(
        ApiOperation(
            "GET",
            path,
            TAG,
            "Read the metadata of the server",
            {200: ok("The metadata.", properties(("issuer",), issuer=STRING), {"issuer": "https://sso.example.com"})},
        )
        for path in DISCOVERY
    ),
    *REGISTRATION_OPERATIONS,
    *(
        ApiOperation(
            "GET",
            path,
            TAG,
            "Read the metadata of a protected resource",
            {
                200: ok(
                    "The metadata (RFC 9728).",
                    properties(
                        ("resource",), resource=STRING, authorization_servers={"type": "array", "items": STRING}
                    ),
                    {"resource": "https://sso.example.com/api/admin"},
                )
            },
        )
        for path in METADATA_PATHS
    ),
    replace(page(LOGOUT, TAG, "Sign out at the request of a site", *LOGOUT_PARAMETERS), is_page=False),
    form(LOGOUT, TAG, "Confirm the sign-out", "query", *LOGOUT_PARAMETERS, errors=(403,)),
)
