"""What a browser brings: cookies, and the proof that a form was ours and sent from our page."""

import base64
import hashlib
import hmac
import re
from urllib.parse import urlsplit

from quart import Response, current_app, request

from sso.core.errors import Forbidden
from sso.core.ids import secret_token
from sso.core.language import Text

SESSION = "sso_session"  # somebody is signed in
VISIT = "sso_visit"  # nobody is yet; after a right password it stands for the owed second factor
DEVICE = "sso_device"  # the browser has signed in before; no credential
# One slash and then neither a slash nor a backslash, encoded or not: two of them would begin another host.
LOCAL_PATH = re.compile(r"/(?!%(?:2[Ff]|5[Cc]))(?:[A-Za-z0-9_.~?&=%+:,@-][A-Za-z0-9/_.~?&=%+:,@-]*)?", re.ASCII)
SECRET = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


class InvalidForm(Forbidden):
    message = Text("This form has expired or was not sent from our page. Go back, reload the page and try again.")


def cookie(name: str) -> str:
    """The secret of a cookie, or "" for anything that was never one of ours."""
    value = request.cookies.get(_full_name(name), "")
    return value if SECRET.fullmatch(value) else ""


def device_cookie() -> str:
    """Returns what the browser sent, unchecked and bounded."""
    return str(request.cookies.get(_full_name(DEVICE), ""))[:1024]


def set_cookie(response: Response, name: str, value: str, max_age: int | None = None) -> None:
    response.set_cookie(
        _full_name(name), value, max_age=max_age, path="/", httponly=True, samesite="Lax", secure=_https()
    )


def drop_cookie(response: Response, name: str) -> None:
    response.delete_cookie(_full_name(name), path="/", httponly=True, samesite="Lax", secure=_https())


def visit() -> tuple[str, bool]:
    """The secret of this visit and whether it is new (its cookie must then be set)."""
    secret = cookie(VISIT)
    return (secret, False) if secret else (secret_token(), True)


def csrf_token(secret: str) -> str:
    """Shown in forms; only who holds the cookie knows it."""
    return base64.urlsafe_b64encode(hashlib.sha256(b"csrf:" + secret.encode()).digest()).decode().rstrip("=")


def check_csrf(secret: str, token: object) -> None:
    """Refuse a form that another site sent, or that was made for another session."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise InvalidForm
    origin = request.headers.get("Origin")
    if origin is not None and origin not in _own_origins():
        raise InvalidForm
    if not secret or not isinstance(token, str) or not hmac.compare_digest(csrf_token(secret).encode(), token.encode()):
        raise InvalidForm


def safe_next(text: object) -> str:
    """Where to go after signing in: a path of ours, else nowhere in particular."""
    if isinstance(text, str) and len(text) <= 4096 and LOCAL_PATH.fullmatch(text):
        return text
    return "/account"


def _own_origins() -> set[str]:
    base = urlsplit(current_app.config["BASE_URL"])
    # A site cannot choose the Host that a browser sends to us, so a page opened as "localhost" may post there too.
    return {f"{base.scheme}://{base.netloc}", f"{base.scheme}://{request.host}"}


def _https() -> bool:
    return bool(current_app.config["HTTPS"])


def _full_name(name: str) -> str:
    return f"__Host-{name}" if _https() else name
