"""GET and POST /proxy/oauth/logout."""

from urllib.parse import urlencode

from quart import Blueprint, Response, request

from sso.accounts.sessions import Session, SessionStore
from sso.accounts.visitor import Visitor
from sso.oauth.authorization_request import Parameters, ui_locales
from sso.oauth.logout import PARAMETERS, Logout, LogoutRequest
from sso.web import language
from sso.web.cookies import SESSION_COOKIE, delete_cookie
from sso.web.csrf import check_csrf, csrf_token
from sso.web.language import _
from sso.web.pages import form_fields, page
from sso.web.redirects import see_other

PATH = "/proxy/oauth/logout"


def logout_pages(logout: Logout, visitor: Visitor, sessions: SessionStore) -> Blueprint:
    routes = Blueprint("oauth_logout", __name__)

    @routes.get(PATH)
    async def leave() -> Response:
        leaving = await read(request.query_string)
        session = await visitor.session()
        if session is None:
            return await left(leaving)
        if leaving.may_end(session):
            return await end(session, leaving)
        return await page(
            "logout.html",
            page_title=_("Sign out"),
            user=session.user,
            csrf=csrf_token(session.secret),
            form_targets=(leaving.target.origin,) if leaving.target else (),
            action=PATH,
            site=leaving.site,
            query=request.query_string.decode("ascii", "replace"),  # kept as it came: a state may be any bytes
        )

    @routes.post(PATH)
    async def confirm() -> Response:
        form = await form_fields()
        if "csrf" not in form:
            # A site's own form: the browser sends no cookie along with it, but does with a GET.
            return see_other(f"{PATH}?{urlencode({name: form[name] for name in PARAMETERS if name in form})}")
        leaving = await read(form.get("query", "").encode())
        session = await visitor.session()
        if session is None:
            return await left(leaving)
        check_csrf(session.secret, form.get("csrf"))
        return await end(session, leaving)

    async def read(query: bytes) -> LogoutRequest:
        given = Parameters.read(query)
        language.use_ui_locales(ui_locales(given))
        return await logout.read(given)

    async def end(session: Session, leaving: LogoutRequest) -> Response:
        await sessions.end(session.user.user_id, session.id)
        response = await left(leaving)
        delete_cookie(response, SESSION_COOKIE)
        return response

    async def left(leaving: LogoutRequest) -> Response:
        if leaving.url:
            return see_other(leaving.url)
        return await page(
            "message.html",
            page_title=_("Signed out"),
            heading=_("You are signed out"),
            message=_("You can close this window."),
            link="/login",
            link_text=_("Sign in again"),
        )

    return routes
