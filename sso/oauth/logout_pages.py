"""GET and POST /proxy/oauth/logout."""

from urllib.parse import urlencode

from quart import Blueprint, Response, request

from sso.accounts.pages import Visitor
from sso.accounts.sessions import Session, SessionStore
from sso.oauth.logout import PARAMETERS, Leaving, Logout
from sso.web import browser
from sso.web.browser import SESSION
from sso.web.pages import form_fields, page, see_other

PATH = "/proxy/oauth/logout"


def logout_pages(logout: Logout, visitor: Visitor, sessions: SessionStore) -> Blueprint:
    routes = Blueprint("oauth_logout", __name__)

    @routes.get(PATH)
    async def leave() -> Response:
        given = {name: request.args[name] for name in PARAMETERS if name in request.args}
        leaving = await logout.read(given)
        session = await visitor.session()
        if session is None:
            return await left(leaving)
        if leaving.may_end(session):
            return await end(session, leaving)
        return await page(
            "logout.html",
            page_title="Sign out",
            user=session.user,
            csrf=browser.csrf_token(session.secret),
            form_targets=(leaving.target.origin,) if leaving.target else (),
            action=PATH,
            site=leaving.site,
            fields=given,
        )

    @routes.post(PATH)
    async def confirm() -> Response:
        form = await form_fields()
        given = {name: form[name] for name in PARAMETERS if name in form}
        if "csrf" not in form:
            # A site's own form: the browser sends no cookie along with it, but does with a GET.
            return see_other(f"{PATH}?{urlencode(given)}")
        leaving = await logout.read(given)
        session = await visitor.session()
        if session is None:
            return await left(leaving)
        browser.check_csrf(session.secret, form.get("csrf"))
        return await end(session, leaving)

    async def end(session: Session, leaving: Leaving) -> Response:
        await sessions.end(session.user.user_id, session.id)
        response = await left(leaving)
        browser.drop_cookie(response, SESSION)
        return response

    async def left(leaving: Leaving) -> Response:
        if leaving.url:
            return see_other(leaving.url)
        return await page(
            "message.html",
            page_title="Signed out",
            heading="You are signed out",
            message="You can close this window.",
            link="/login",
            link_text="Sign in again",
        )

    return routes
