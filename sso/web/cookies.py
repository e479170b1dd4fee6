"""The cookies of a browser: their names, attributes and values."""

import re

from quart import Response
from quart.globals import _cv_app

from sso.core.ids import SECRET_TOKEN, secret_token
from sso.web.request import current_request

SESSION_COOKIE = "sso_session"  # holds the secret of a browser session
VISIT_COOKIE = "sso_visit"  # before sign-in; after a correct password it identifies the pending second factor
DEVICE_COOKIE = "sso_device"  # shows that this browser has signed in before; it is no credential
RESET_COOKIE = "sso_reset"  # the secret of a link that resets a password
LANGUAGE_COOKIE = "sso_language"  # the language that was chosen on a page
UPSTREAM_COOKIE = "sso_upstream"  # binds a sign-in with another provider to this browser
CODES_COOKIE = "sso_codes"  # new recovery codes, encrypted, until the next page shows them
IMPERSONATION_COOKIE = "sso_impersonation"  # holds the secret of a visit of support to an account
MAX_DEVICE_COOKIE = 1024
MAX_LANGUAGE_COOKIE = 35  # RFC 5646 section 4.4.1
MAX_SEALED_COOKIE = 2048

_SECRET = re.compile(SECRET_TOKEN, re.ASCII)


def is_secret(text: str) -> bool:
    """Returns whether the text has the form of our secrets."""
    return _SECRET.fullmatch(text) is not None


def read_cookie(name: str) -> str:
    """Returns the secret in a cookie, or "" if the value does not have the form of our secrets."""
    value = _read(name)
    return value if is_secret(value) else ""


def read_device_cookie() -> str:
    """Returns the value that the browser sent, cut to the maximum length but not checked."""
    return _read(DEVICE_COOKIE)[:MAX_DEVICE_COOKIE]


def read_language_cookie() -> str:
    """Returns the value that the browser sent, cut but not checked."""
    return _read(LANGUAGE_COOKIE)[:MAX_LANGUAGE_COOKIE]


def read_sealed_cookie(name: str) -> str:
    """Returns an encrypted value, cut to the maximum length but not checked."""
    return _read(name)[:MAX_SEALED_COOKIE]


def set_cookie(response: Response, name: str, value: str, max_age: int | None = None) -> None:
    response.set_cookie(
        _full_name(name), value, max_age=max_age, path="/", httponly=True, samesite="Lax", secure=_https()
    )


def delete_cookie(response: Response, name: str) -> None:
    response.delete_cookie(_full_name(name), path="/", httponly=True, samesite="Lax", secure=_https())


def visit_secret(name: str = VISIT_COOKIE) -> tuple[str, bool]:
    """Returns the secret of this visit and whether it is new; the caller must set the cookie of a new one."""
    secret = read_cookie(name)
    return (secret, False) if secret else (secret_token(), True)


def _read(name: str) -> str:
    """Returns "" for a missing cookie at once; Werkzeug's ``get`` would raise and catch an HTTP error."""
    cookies, full_name = current_request().cookies, _full_name(name)
    if full_name not in cookies:
        return ""
    return cookies[full_name]


def _https() -> bool:
    return bool(_cv_app.get().app.config["HTTPS"])


def _full_name(name: str) -> str:
    return f"__Host-{name}" if _https() else name
