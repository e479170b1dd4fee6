"""GET and POST /proxy/oauth/logout: the confirmation page, and the end of the browser session."""

from urllib.parse import urlencode

from quart import Blueprint, Response, request

from sso.accounts.session_store import Session, SessionStore
from sso.accounts.visitor import Visitor
from sso.oauth.authorization.request import Parameters, ui_locales
from sso.oauth.logout import PARAMETERS, Logout, LogoutRequest
from sso.web import language
from sso.web.cookies import IMPERSONATION_COOKIE, SESSION_COOKIE, delete_cookie
from sso.web.csrf import check_csrf, csrf_token
from sso.web.language import _
from sso.web.pages import form_fields, page
from sso.web.redirects import see_other

PATH = "/proxy/oauth/logout"


def logout_pages(logout: Logout, visitor: Visitor, sessions: SessionStore) -> Blueprint:
    routes = Blueprint("oauth_logout", __name__)

    @routes.get(PATH)
    async def begin() -> Response:
        logout_request = await validate(request.query_string)
        session = await visitor.session(may_enrol=True, may_accept=True)
        if session is None:
            return await signed_out(logout_request)
        if logout_request.needs_no_confirmation(session):
            return await end(session, logout_request)
        return await page(
            "logout.html",
            page_title=_("Sign out"),
            user=session.user,
            csrf=csrf_token(session.secret),
            form_targets=(logout_request.redirect.origin,) if logout_request.redirect else (),
            action=PATH,
            site=logout_request.client_title,
            query=request.query_string.decode("ascii", "replace"),  # unchanged, because a state may be any bytes
        )

    @routes.post(PATH)
    async def confirm() -> Response:
        form = await form_fields()
        if "csrf" not in form:
            # A form on the client's page: the browser sends no SameSite cookie with this POST, but does with a GET.
            return see_other(f"{PATH}?{urlencode({name: form[name] for name in PARAMETERS if name in form})}")
        logout_request = await validate(form.get("query", "").encode())
        session = await visitor.session(may_enrol=True, may_accept=True)
        if session is None:
            return await signed_out(logout_request)
        check_csrf(session.secret, form.get("csrf"))
        return await end(session, logout_request)

    async def validate(query: bytes) -> LogoutRequest:
        parameters = Parameters.read(query)
        language.use_ui_locales(ui_locales(parameters))
        return await logout.validate(parameters)

    async def end(session: Session, logout_request: LogoutRequest) -> Response:
        await sessions.end(session.user.user_id, session.id)
        response = await signed_out(logout_request)
        delete_cookie(response, SESSION_COOKIE)
        delete_cookie(response, IMPERSONATION_COOKIE)
        return response

    async def signed_out(logout_request: LogoutRequest) -> Response:
        if logout_request.url:
            return see_other(logout_request.url)
        return await page(
            "message.html",
            page_title=_("Signed out"),
            heading=_("You are signed out"),
            message=_("You can close this window."),
            link="/login",
            link_text=_("Sign in again"),
        )

    return routes
