"""The pages of an authorization: asking for consent, and going back to the site."""

from collections.abc import Callable
from typing import assert_never
from urllib.parse import quote

from quart import Blueprint, Response, request
from quart.blueprints import BlueprintSetupState

from sso.accounts.account_view import describe_scopes
from sso.accounts.login_form import show_login_form
from sso.accounts.sessions import Session
from sso.accounts.visitor import Visitor
from sso.db.errors import DatabaseError
from sso.db.rate_limit import RateLimiter
from sso.oauth.authorization_request import Parameters, ui_locales
from sso.oauth.authorize import AskConsent, Authorize, Outcome, RedirectTo, ShowSignIn, told
from sso.oauth.errors import AuthorizationError, InvalidRedirectUri, TooManyAuthorizations
from sso.oauth.login_flow import PATH, SiteLoginFlow, form_targets
from sso.oauth.model import PendingAuthorization
from sso.web import language
from sso.web.csrf import check_csrf, csrf_token
from sso.web.language import _
from sso.web.pages import form_fields, page
from sso.web.redirects import see_other
from sso.web.request import client_address

CONTINUE = f"{PATH}<request_id>"


def authorize_pages(authorize: Authorize, visitor: Visitor, rate: RateLimiter) -> Blueprint:
    routes = Blueprint("authorize", __name__)

    @routes.get("/proxy/oauth/authorize")
    async def begin() -> Response:
        parameters = Parameters.read(request.query_string)
        language.use_ui_locales(ui_locales(parameters))
        try:
            client, redirect = await authorize.recipient(parameters)
        except InvalidRedirectUri:
            await admitted_session()  # it counts as well
            raise
        assert parameters is not None
        try:
            wanted = authorize.check(parameters, client, redirect)
            outcome = await authorize.begin(wanted, await admitted_session())
        except (AuthorizationError, DatabaseError) as error:
            return _found(told(redirect, error, parameters.only("state")))
        if isinstance(outcome, ShowSignIn):
            # Here, and not elsewhere after a redirect: that would be another way around the world.
            return await show_login_form(SiteLoginFlow(outcome.pending, authorize))
        return await show(outcome, _found)

    @routes.get(CONTINUE)
    async def resume(request_id: str) -> Response:
        pending = await find(request_id)
        try:
            outcome = await authorize.resume(pending, await visitor.session())
        except (AuthorizationError, DatabaseError) as error:
            return _found(told(pending.wanted.redirect, error, pending.wanted.state))
        return await show(outcome, _found)

    @routes.post(CONTINUE)
    async def decide(request_id: str) -> Response:
        form = await form_fields()
        session = await visitor.session()
        if session is None:
            return see_other(_sign_in(request_id))
        check_csrf(session.secret, form.get("csrf"))
        pending = await find(request_id)
        try:
            outcome = await authorize.decide(pending, session, form.get("decision", ""))
        except (AuthorizationError, DatabaseError) as error:
            return see_other(told(pending.wanted.redirect, error, pending.wanted.state))
        return await show(outcome, see_other)

    @routes.record
    def without_head(state: BlueprintSetupState) -> None:
        """It comes along with GET by itself, and must not make codes."""
        for rule in state.app.url_map.iter_rules():
            if rule.endpoint.startswith(f"{routes.name}.") and rule.methods:
                rule.methods.discard("HEAD")

    async def admitted_session() -> Session | None:
        """The session of this browser. Without one, an authorization is counted before it is stored."""
        session = await visitor.session()
        if session is None and (wait_s := await rate.add(client_address())):
            raise TooManyAuthorizations(wait_s)
        return session

    async def find(request_id: str) -> PendingAuthorization:
        pending = await authorize.pending(request_id)
        language.use_ui_locales(pending.wanted.ui_locales)
        return pending

    async def show(outcome: Outcome, redirect: Callable[[str], Response]) -> Response:
        match outcome:
            case RedirectTo(url):
                return redirect(url)
            case ShowSignIn(pending):
                return redirect(_sign_in(pending.id))
            case AskConsent(pending, session, consent):
                return await ask(pending, session, consent)
            case _:
                assert_never(outcome)

    async def ask(pending: PendingAuthorization, session: Session, consent: bool) -> Response:
        return await page(
            "authorize.html",
            page_title=_("Continue"),
            user=session.user,
            csrf=csrf_token(session.secret),
            form_targets=form_targets(pending.wanted),
            action=PATH + pending.id,
            site=pending.wanted.client.title,
            host=pending.wanted.redirect.origin.partition("://")[2],
            consent=consent,
            knows=describe_scopes(pending.wanted.scopes),
            offline="offline_access" in pending.wanted.scopes,
        )

    return routes


def _sign_in(request_id: str) -> str:
    return f"/login?next={quote(PATH + request_id)}"


def _found(url: str) -> Response:
    return Response(b"", 302, {"Location": url}, content_type="text/plain; charset=utf-8")
