"""The form with which people sign in, on whichever page it is."""

from typing import Any

from quart import Response

from sso.accounts.login_flow import LoginFlow
from sso.web.cookies import VISIT_COOKIE, set_cookie, visit_secret
from sso.web.csrf import csrf_token
from sso.web.language import _
from sso.web.pages import page
from sso.web.redirects import safe_next
from sso.web.request import client_address


async def show_login_form(
    journey: LoginFlow | None, next_path: str | None = None, *, status: int = 200, login: str = "", **context: Any
) -> Response:
    """``next_path``: where to go afterwards, if it is no journey, or one that is not known any more."""
    secret, is_new = visit_secret()
    if journey:
        next_path = journey.path
        login = login or journey.login_hint
    details = journey.details(client_address()) if journey else {}
    own = {
        "csrf": csrf_token(secret),
        "next": safe_next(next_path) if next_path else "",
        "login": login,
    }
    response = await page(
        journey.page if journey else "login.html",
        status=status,
        page_title=_("Sign in"),
        site=journey.title if journey else "",
        form_targets=journey.form_targets if journey else (),
        action="/login",
        **({**own, **details} if details else {"own": own}),
        **context,
    )
    if is_new:
        set_cookie(response, VISIT_COOKIE, secret)
    return response
