"""The form with which people sign in, on whichever page it is."""

from typing import Any

from quart import Response

from sso.accounts.login_flow import LoginFlow
from sso.web import cookies_csrf
from sso.web.cookies_csrf import VISIT
from sso.web.http import address
from sso.web.language import _
from sso.web.pages import page


async def show_login_form(
    journey: LoginFlow | None, next_path: str | None = None, *, status: int = 200, login: str = "", **context: Any
) -> Response:
    """``next_path``: where to go afterwards, if it is no journey, or one that is not known any more."""
    secret, is_new = cookies_csrf.visit()
    if journey:
        next_path = journey.path
        login = login or journey.login_hint
    details = journey.details(address()) if journey else {}
    own = {
        "csrf": cookies_csrf.csrf_token(secret),
        "next": cookies_csrf.safe_next(next_path) if next_path else "",
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
        cookies_csrf.set_cookie(response, VISIT, secret)
    return response
