"""Describes POST /proxy/api/login, and the pages of sign-in, registration and password reset."""

from sso.accounts.authentication_context import (
    GAME_AUTH,
    GUEST_AUTH,
    PASSWORD,
    PASSWORD_AND_CODE,
    TICKET_AUTHS,
    TOKEN_AUTH,
)
from sso.accounts.login.routes import EndSignInRequest, LoginRequest
from sso.web.api_description import STRING, ApiBody, ApiOperation, ApiParameter, envelope, form, ok, page

LOGIN_TAG, PAGES_TAG = "Login", "Sign-in pages"

LOGIN_EXAMPLE = {
    "status": "OK",
    "user_id": "1001",
    "auth": "login",
    "nick": "Ann",
    "sso_nick": "Ann",
    "country": "DE",
    "lang": "en",
    "level": "0",
    "reg_time": "1794700000",
    "tags": "beta,vip",
    "token": "kD3v…",
    "stoken": "x9Qa…",
    "token_exp": 2592000,
    "jwt": "eyJhbGciOi…",
}
AUTHENTICATION_DATA = envelope(
    ("user_id", "token"),
    user_id=STRING,
    auth={
        "enum": [PASSWORD, PASSWORD_AND_CODE, TOKEN_AUTH, GAME_AUTH, GUEST_AUTH, *TICKET_AUTHS],
        "description": "How the user was authenticated.",
    },
    guest={"type": "boolean", "description": "True for a guest, absent for others."},
    nick=STRING,
    country=STRING,
    lang=STRING,
    level=STRING,
    reg_time={**STRING, "description": "Unix seconds."},
    tags={**STRING, "description": "Tags of the user, separated by commas."},
    token={**STRING, "description": "The session token."},
    stoken={**STRING, "description": "A session token that is valid for an hour."},
    token_exp={"type": "integer", "description": "Seconds for which the token is valid."},
    jwt={**STRING, "description": "The user JWT, if a factor was sent."},
    permissions={"type": "object", "description": "For each application, the permissions as list_short."},
)

ADDRESS_HEADERS = (
    ApiParameter("Ip", "The address of the client that a server acts for; needs Signature.", "header"),
    ApiParameter("Signature", "The signature of an access key over Ip.", "header"),
)
SERVICE_JWT_HEADER = ApiParameter("Service-Jwt", "The service JWT of the application.", "header")

_IMPERSONATION = (
    page("/impersonate", PAGES_TAG, "Ask whether support opens an account", "token", errors=(410,)),
    form("/impersonate", PAGES_TAG, "Open an account as support", "token", errors=(410,)),
    form("/account/impersonation/end", PAGES_TAG, "Close an account that support has opened"),
)
_EMAIL_LINKS = tuple(
    operation
    for path, show, do in (
        ("/email/verify", "Ask whether an e-mail address is verified", "Verify an e-mail address"),
        ("/email/change", "Ask whether an e-mail address is changed", "Change an e-mail address"),
        ("/email/undo", "Ask whether the change of an address is undone", "Undo the change of an e-mail address"),
    )
    for operation in (
        page(path, PAGES_TAG, show, "token", errors=(410,)),
        form(path, PAGES_TAG, do, "token", errors=(409, 410)),
    )
)

OPERATIONS = (
    ApiOperation(
        "POST",
        "/proxy/api/login",
        LOGIN_TAG,
        "Sign in with a password or a session token",
        {200: ok("Tokens of the user.", AUTHENTICATION_DATA, LOGIN_EXAMPLE)},
        "With a `factor`, the response has a user JWT. If the user has a second factor, the first answer is 401 with "
        "`otp`, the list of factors; send the request again with `otp`. If one of them is `email`, `email_sent` says "
        "whether a code was sent now, and `email_wait_s` when the next one can be.",
        (*ADDRESS_HEADERS, SERVICE_JWT_HEADER),
        ApiBody(
            LoginRequest,
            examples={
                "password": {"login": "ann@example.com", "password": "correct horse", "factor": "device-1"},
                "second factor": {"login": "ann@example.com", "password": "correct horse", "otp": "123456"},
                "session token": {"token": "kD3v…", "factor": "device-1"},
            },
        ),
        (401, 403),
    ),
    ApiOperation(
        "POST",
        "/proxy/api/logout",
        LOGIN_TAG,
        "End the sign-in of a session token",
        {200: ok("The sign-in has ended.", envelope(), {"status": "OK"})},
        "Its session tokens and user JWTs end, as with signing out of a game on the account page. A token that is "
        "unknown or has ended gets the same answer.",
        (),
        ApiBody(EndSignInRequest, examples={"session token": {"token": "kD3v…"}}),
    ),
    page(
        "/", PAGES_TAG, "Start a sign-in, for example from a game", "gsid", "app_id", "gapp_id", errors=(403, 404, 410)
    ),
    page("/login", PAGES_TAG, "Show the sign-in form", "next", errors=(403, 404, 410)),
    form("/login", PAGES_TAG, "Sign in with a password", "login", "password", "next", errors=(403, 404, 410)),
    form("/login/passkey", PAGES_TAG, "Sign in with a passkey", "credential", "next", errors=(403, 404, 410)),
    page("/login/code", PAGES_TAG, "Ask for the second factor", "next", errors=(403, 404, 410)),
    form("/login/code", PAGES_TAG, "Check the second factor", "otp", "next", errors=(403, 404, 410)),
    form(
        "/login/code/passkey", PAGES_TAG, "Use a passkey as second factor", "credential", "next", errors=(403, 404, 410)
    ),
    form("/login/code/resend", PAGES_TAG, "Send another code by e-mail", "next", errors=(403, 404, 410)),
    form("/logout", PAGES_TAG, "Sign out", "next", errors=(403,)),
    page("/register", PAGES_TAG, "Show the registration form", "next", "token", errors=(403, 404, 409, 410)),
    form("/register", PAGES_TAG, "Send a registration mail", "email", "next", "puzzle", "solution", errors=(403, 422)),
    page("/register/code", PAGES_TAG, "Ask for the code of the registration mail", "next"),
    form("/register/code", PAGES_TAG, "Check the code of the registration mail", "otp", "next", errors=(403, 422)),
    form(
        "/register/complete",
        PAGES_TAG,
        "Create the account",
        "token",
        "nick",
        "password",
        errors=(403, 404, 409, 410, 422),
    ),
    page("/forgot", PAGES_TAG, "Ask for the account whose password was forgotten", "next"),
    form("/forgot", PAGES_TAG, "Send a link for a new password", "login", "next", errors=(403, 404, 422)),
    page("/reset", PAGES_TAG, "Ask for a new password", "token", errors=(410,)),
    form(
        "/reset",
        PAGES_TAG,
        "Set a new password",
        "new_password",
        "repeat_password",
        "otp",
        "credential",
        errors=(403, 410, 422),
    ),
    *_EMAIL_LINKS,
    *_IMPERSONATION,
)
