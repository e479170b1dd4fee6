"""The form with which people sign in, on whichever page it is."""

from typing import Any

from quart import Response

from sso.accounts.journey import Journey
from sso.web import browser
from sso.web.browser import VISIT
from sso.web.http import address
from sso.web.language import _
from sso.web.pages import page


async def signin_form(
    journey: Journey | None, next_path: str | None = None, *, status: int = 200, login: str = "", **context: Any
) -> Response:
    """``next_path``: where to go afterwards, if it is no journey, or one that is not known any more."""
    secret, is_new = browser.visit()
    if journey:
        next_path = journey.path
        login = login or journey.login_hint
    details = journey.details(address()) if journey else {}
    own = {
        "csrf": browser.csrf_token(secret),
        "next": browser.safe_next(next_path) if next_path else "",
        "login": login,
    }
    response = await page(
        journey.page if journey else "signin.html",
        status=status,
        page_title=_("Sign in"),
        site=journey.title if journey else "",
        form_targets=journey.form_targets if journey else (),
        action="/login",
        **({**own, **details} if details else {"own": own}),
        **context,
    )
    if is_new:
        browser.set_cookie(response, VISIT, secret)
    return response
