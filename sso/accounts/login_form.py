"""The login form, on its own page or on that of a login flow."""

from typing import Any

from quart import Response

from sso.accounts.login_flow import LoginFlow
from sso.web import cookies_csrf
from sso.web.cookies_csrf import VISIT
from sso.web.http import address
from sso.web.language import _
from sso.web.pages import page


async def show_login_form(
    flow: LoginFlow | None, next_path: str | None = None, *, status: int = 200, login: str = "", **context: Any
) -> Response:
    """``next_path`` is where to go after the login if there is no flow, or if it is no longer known."""
    secret, is_new = cookies_csrf.visit()
    if flow:
        next_path = flow.path
        login = login or flow.login_hint
    details = flow.details(address()) if flow else {}
    own = {
        "csrf": cookies_csrf.csrf_token(secret),
        "next": cookies_csrf.safe_next(next_path) if next_path else "",
        "login": login,
    }
    response = await page(
        flow.page if flow else "login.html",
        status=status,
        page_title=_("Sign in"),
        site=flow.title if flow else "",
        form_targets=flow.form_targets if flow else (),
        action="/login",
        **({**own, **details} if details else {"own": own}),
        **context,
    )
    if is_new:
        cookies_csrf.set_cookie(response, VISIT, secret)
    return response
