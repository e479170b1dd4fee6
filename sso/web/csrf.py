"""Protection against cross-site request forgery: tokens in forms, and checks of the headers that browsers add."""

import base64
import hashlib
import hmac
from urllib.parse import urlsplit

from quart import current_app, request

from sso.core.errors import Forbidden
from sso.core.language import Text


class InvalidForm(Forbidden):
    message = Text("This form has expired or was not sent from our page. Go back, reload the page and try again.")


def csrf_token(secret: str) -> str:
    """Returns the token for forms, derived from the secret in the browser's cookie; other sites cannot know it."""
    return base64.urlsafe_b64encode(hashlib.sha256(b"csrf:" + secret.encode()).digest()).decode().rstrip("=")


def check_csrf(secret: str, token: object) -> None:
    """Raises InvalidForm for a form that another site sent, or that was rendered for another session."""
    if not is_own_form(secret, token):
        raise InvalidForm


def is_own_form(secret: str, token: object) -> bool:
    """Returns whether one of our pages sent the form, and was rendered for the browser with this secret."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("Origin")
    if origin is not None and origin not in _own_origins():
        return False
    if not secret or not isinstance(token, str):
        return False
    return hmac.compare_digest(csrf_token(secret).encode(), token.encode())


def _own_origins() -> set[str]:
    base = urlsplit(current_app.config["BASE_URL"])
    # A site cannot choose the Host that a browser sends to us, so a page opened as "localhost" may post there too.
    return {f"{base.scheme}://{base.netloc}", f"{base.scheme}://{request.host}"}
