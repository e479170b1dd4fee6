"""GET /proxy/oauth/authorize and the pages that follow: the consent form, and the redirect to the client."""

from collections.abc import Callable
from typing import assert_never
from urllib.parse import quote

from quart import Blueprint, Response, request
from quart.blueprints import BlueprintSetupState

from sso.accounts.account_page.sections import describe_scopes
from sso.accounts.login.form import LoginForm
from sso.accounts.session_store import Session
from sso.accounts.visitor import Visitor
from sso.core.field_errors import FieldError
from sso.core.urls import origin_of
from sso.db.errors import DatabaseError
from sso.db.rate_limit import RateLimiter
from sso.oauth.authorization.authorize import AskConsent, Authorize, Outcome, ShowSignIn
from sso.oauth.authorization.login_flow import PATH, SiteLoginFlow, form_targets
from sso.oauth.authorization.pushed_requests import PushedAuthorizationRequests, has_request_uri
from sso.oauth.authorization.request import Parameters, ui_locales
from sso.oauth.authorization.response import PostForm, RedirectTo
from sso.oauth.authorization.session_rules import asks_each_time
from sso.oauth.clients.branding import site_brand
from sso.oauth.errors import AuthorizationError, InvalidRedirectUri, TooManyAuthorizations
from sso.oauth.model import AuthorizationRequest, PendingAuthorization
from sso.oauth.recording.recorder import RequestRecorder
from sso.oauth.registration.registration import DOCUMENT
from sso.web import language
from sso.web.csrf import check_csrf, csrf_token
from sso.web.language import _
from sso.web.pages import MAX_FORM, form_fields, page
from sso.web.redirects import see_other
from sso.web.request import client_address, read_body

AUTHORIZE_PATH = "/proxy/oauth/authorize"
RESUME_PATH = f"{PATH}<request_id>"
_QUERY_CHARACTERS = "!$&'()*+,/:;=?@%"  # besides letters, digits and -._~


def authorize_pages(
    authorize: Authorize,
    pushed_requests: PushedAuthorizationRequests,
    visitor: Visitor,
    login_form: LoginForm,
    rate: RateLimiter,
    recorder: RequestRecorder,
) -> Blueprint:
    routes = Blueprint("authorize", __name__)

    @routes.post(AUTHORIZE_PATH)
    async def begin_with_form() -> Response:
        """Redirects to GET: browsers send no SameSite cookie with the POST of another site, but do with a GET."""
        body = await read_body(max_bytes=MAX_FORM)
        if not body.is_form:
            raise FieldError(("Content-Type",), "expected application/x-www-form-urlencoded", status=415)
        return see_other(f"{AUTHORIZE_PATH}?{quote(body.raw, safe=_QUERY_CHARACTERS)}")

    @routes.get(AUTHORIZE_PATH)
    @recorder.observed("authorize")
    async def begin() -> Response:
        parameters = Parameters.read(request.query_string)
        if parameters and has_request_uri(parameters):
            return await begin_pushed(parameters)
        language.use_ui_locales(ui_locales(parameters))
        session, failure = None, None
        if recent := authorize.recent_request(parameters):
            session = await session_within_rate()
            try:
                outcome = await authorize.begin(recent, session)
            except (AuthorizationError, InvalidRedirectUri):
                pass  # the client may have changed: it is read now
            except DatabaseError as error:
                failure = error  # the redirect URI is checked before the error is sent there
            else:
                return await show_beginning(outcome)
        try:
            client, redirect = await authorize.find_client(parameters, client_address())
        except InvalidRedirectUri:
            if recent is None:
                await session_within_rate()
            raise
        assert parameters is not None
        try:
            if failure:
                raise failure
            if recent is None:
                session = await session_within_rate()  # an invalid request counts as well
            validated = await authorize.validate(parameters, client, redirect)
            await check_enrolment(validated, session)
            outcome = await authorize.begin(validated, session)
        except (AuthorizationError, DatabaseError) as error:
            return await show(
                authorize.responses.with_error_of_parameters(client, redirect, parameters, error), _redirect_302
            )
        return await show_beginning(outcome)

    async def show_beginning(outcome: Outcome) -> Response:
        if isinstance(outcome, ShowSignIn):
            # The form is shown at once; a redirect to the sign-in page would cost another round trip.
            return await login_form.show(SiteLoginFlow(outcome.pending, authorize))
        return await show(outcome, _redirect_302)

    async def begin_pushed(query: Parameters) -> Response:
        """Begins with a pushed request, which is used up, and redirects to pages that can be reloaded."""
        session = await session_within_rate()
        parameters = await pushed_requests.use(query)
        language.use_ui_locales(ui_locales(parameters))
        client, redirect = await authorize.find_client(parameters, client_address())
        try:
            validated = await authorize.validate(parameters, client, redirect, is_pushed=True)
            await check_enrolment(validated, session)
            outcome = await authorize.begin(validated, session)
        except (AuthorizationError, DatabaseError) as error:
            return await show(
                authorize.responses.with_error_of_parameters(client, redirect, parameters, error), _redirect_302
            )
        if isinstance(outcome, AskConsent):
            return _redirect_302(PATH + outcome.pending.id)
        return await show(outcome, _redirect_302)

    @routes.get(RESUME_PATH)
    async def resume(request_id: str) -> Response:
        pending = await find_pending(request_id)
        try:
            outcome = await authorize.resume(pending, await visitor.session())
        except (AuthorizationError, DatabaseError) as error:
            return await show(authorize.responses.with_error(pending.request, error), _redirect_302)
        return await show(outcome, _redirect_302)

    @routes.post(RESUME_PATH)
    async def decide(request_id: str) -> Response:
        form = await form_fields()
        session = await visitor.session()
        if session is None:
            return see_other(_sign_in_path(request_id))
        check_csrf(session.secret, form.get("csrf"))
        pending = await find_pending(request_id)
        try:
            outcome = await authorize.decide(pending, session, form.get("decision", ""))
        except (AuthorizationError, DatabaseError) as error:
            return await show(authorize.responses.with_error(pending.request, error), see_other)
        return await show(outcome, see_other)

    @routes.record
    def without_head(state: BlueprintSetupState) -> None:
        """Removes HEAD, which Quart adds to every GET route: a HEAD request must not issue a code."""
        for rule in state.app.url_map.iter_rules():
            if rule.endpoint.startswith(f"{routes.name}.") and rule.methods:
                rule.methods.discard("HEAD")

    async def session_within_rate() -> Session | None:
        """Returns the session of this browser. Without a session, the request counts against the rate limit."""
        session = await visitor.session()
        if session is None and (wait_s := await rate.add(client_address())):
            raise TooManyAuthorizations(wait_s)
        return session

    async def check_enrolment(authorization: AuthorizationRequest, session: Session | None) -> None:
        """Raises AuthorizationError if a user who must do something first cannot be asked (prompt=none)."""
        if (
            session is None
            and "none" in authorization.prompts
            and await visitor.session(may_enrol=True, may_accept=True)
        ):
            text = "the user must set up a second factor or accept the terms"
            raise AuthorizationError("interaction_required", text)

    async def find_pending(request_id: str) -> PendingAuthorization:
        pending = await authorize.get_pending(request_id)
        language.use_ui_locales(pending.request.ui_locales)
        return pending

    async def show(outcome: Outcome, redirect: Callable[[str], Response]) -> Response:
        match outcome:
            case RedirectTo(url):
                return redirect(url)
            case PostForm():
                return await show_form(outcome)
            case ShowSignIn(pending):
                return redirect(_sign_in_path(pending.id))
            case AskConsent(pending, session, consent):
                return await ask(pending, session, consent)
            case _:
                assert_never(outcome)

    async def show_form(answer: PostForm) -> Response:
        return await page(
            "form_post.html",
            page_title=_("Continue"),
            form_targets=form_targets(answer.client, answer.redirect),
            site_brand=site_brand(answer.client),
            site=answer.client.title,
            action=answer.redirect.uri,
            fields=answer.fields,
            here="",  # the answer is sent once
        )

    async def ask(pending: PendingAuthorization, session: Session, consent: bool) -> Response:
        return await page(
            "authorize.html",
            page_title=_("Continue"),
            user=session.user,
            csrf=csrf_token(session.secret),
            form_targets=form_targets(pending.request.client, pending.request.redirect),
            site_brand=site_brand(pending.request.client),
            action=PATH + pending.id,
            site=pending.request.client.title,
            host=pending.request.redirect.origin.partition("://")[2],
            consent=consent,
            third_party=_third_party(pending.request),
            resources=pending.request.resources if pending.request.client.registered_by else (),
            port=pending.request.redirect.loopback_port if _acts_for_user(pending.request) else None,
            knows=describe_scopes(pending.request.disclosed_scopes),
            offline="offline_access" in pending.request.scopes,
        )

    return routes


def _acts_for_user(authorization: AuthorizationRequest) -> bool:
    """A program of our own on the machine of the user gets the rights of the user; a third party does not."""
    return asks_each_time(authorization) and not authorization.client.registered_by


def _third_party(authorization: AuthorizationRequest) -> str:
    """Returns where a client comes from that registered itself: the host of its metadata document, or of its redirect
    URI. Returns "" for a client of an administrator."""
    client, redirect = authorization.client, authorization.redirect
    if not client.registered_by:
        return ""
    if client.registered_by == DOCUMENT:
        return origin_of(client.client_id).partition("://")[2]
    return redirect.origin.partition("://")[2]


def _sign_in_path(request_id: str) -> str:
    return f"/login?next={quote(PATH + request_id)}"


def _redirect_302(url: str) -> Response:
    return Response(b"", 302, {"Location": url}, content_type="text/plain; charset=utf-8")
