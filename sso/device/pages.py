"""The page where users type the code that their device shows. The next page asks them to confirm the sign-in."""

from quart import Blueprint, Response, request

from sso.accounts.errors import TooManyAttempts
from sso.accounts.login.messages import retry_message
from sso.accounts.visitor import Visitor
from sso.core.errors import RetryLater
from sso.core.language import Text
from sso.db.rate_limit import RateLimiter
from sso.device.authorization import PAGE
from sso.device.session_store import MAX_TYPED, DeviceSessionStore, format_user_code, parse_user_code
from sso.gsid.login_flow import session_path
from sso.web.cookies import VISIT_COOKIE, read_cookie, set_cookie, visit_secret
from sso.web.csrf import check_csrf, csrf_token
from sso.web.language import _
from sso.web.pages import form_fields, page
from sso.web.redirects import see_other
from sso.web.request import client_address

UNKNOWN = _("We do not know this code. Check it, or start again on your device: a code is valid for a few minutes.")


def device_pages(sessions: DeviceSessionStore, visitor: Visitor, rate: RateLimiter) -> Blueprint:
    routes = Blueprint("device_pages", __name__)

    @routes.get(PAGE)
    async def ask() -> Response:
        """Shows the form. With a code in the link, continues at the page of its session."""
        typed = request.args.get("user_code", "")
        return await look_up(typed) if typed else await show()

    @routes.post(PAGE)
    async def enter() -> Response:
        form = await form_fields()
        session = await visitor.session()
        check_csrf(session.secret if session else read_cookie(VISIT_COOKIE), form.get("csrf"))
        return await look_up(form.get("user_code", ""))

    async def look_up(typed: str) -> Response:
        """Counts the attempt, also that with a valid code, before looking it up: the answer tells which codes exist."""
        if wait_s := await rate.add(client_address()):
            error = TooManyAttempts(wait_s)
            return await show(typed, retry_message(error), error)
        user_code = parse_user_code(typed)
        gsid = await sessions.find_by_user_code(user_code) if user_code else None
        return see_other(session_path(gsid)) if gsid else await show(typed, UNKNOWN)

    async def show(typed: str = "", problem: Text | None = None, error: RetryLater | None = None) -> Response:
        session = await visitor.session()
        secret, is_new = (session.secret, False) if session else visit_secret()
        user_code = parse_user_code(typed)
        response = await page(
            "device.html",
            page_title=_("Connect a device"),
            status=error.status if error else 404 if problem else 200,
            headers=error.headers if error else None,
            user=session.user if session else None,
            csrf=csrf_token(secret),
            here=PAGE,
            action=PAGE,
            typed=format_user_code(user_code) if user_code else typed[:MAX_TYPED],
            problem=problem,
        )
        if is_new:
            set_cookie(response, VISIT_COOKIE, secret)
        return response

    return routes
