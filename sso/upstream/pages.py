"""The pages of a sign-in with another provider: the way there and back, and an identity that has no account yet."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, assert_never
from urllib.parse import parse_qsl

from quart import Blueprint, Response, request

from sso.accounts.account_page.notices import account_url
from sso.accounts.authentication_context import UPSTREAM_AUTH, by_earlier_provider_login, by_provider
from sso.accounts.errors import AccountClosed, InvalidCredentials, TooManyAttempts
from sso.accounts.login.messages import retry_message
from sso.accounts.login.view import ClosedAccountView, LoginCompletion, next_query
from sso.accounts.model import SignedIn
from sso.accounts.nickname import InvalidNickname, parse_nickname
from sso.accounts.recent_authentication import RecentAuthentication
from sso.accounts.session_store import Session
from sso.accounts.visitor import Visitor
from sso.core.language import Text, current_language
from sso.upstream.attempt_store import BegunAttempt
from sso.upstream.errors import AttemptExpired, InvalidAnswer, UpstreamError
from sso.upstream.identity_store import PendingIdentities, PendingIdentity
from sso.upstream.model import IdentityProvider
from sso.upstream.recent_login import CONFLICT_PATH, LINK_PATH
from sso.upstream.registration import AccountExists, IdentityRegistration
from sso.upstream.sign_in import (
    IdentityBelongsToOther,
    IdentityLinked,
    IdentityUnknown,
    LinkingUserRevoked,
    UpstreamOutcome,
    UpstreamSignIn,
    UserIdentified,
)
from sso.upstream.view import UpstreamView, show_problem
from sso.web.cookies import UPSTREAM_COOKIE, read_cookie
from sso.web.csrf import check_csrf, csrf_token
from sso.web.language import _
from sso.web.pages import form_fields, page
from sso.web.redirects import safe_next, see_other
from sso.web.request import client_address

UNKNOWN_PATH = "/login/identity"  # asks what to do with an identity that is not linked
MAX_PARAMETERS = 64
BELONGS_TO_OTHER = _("This %(provider)s account is already linked with another account here.")
NOT_LINKED = _("Your account was changed meanwhile, so nothing was linked. Please sign in and try again.")
REPLACED = _(
    "Meanwhile, this browser was used to sign in with another account. Please read this page again before you continue."
)
ACCOUNT_EXISTS = _("There is already an account with your e-mail address. Sign in to it once, to link the two.")


def upstream_pages(
    view: UpstreamView,
    sign_in: UpstreamSignIn,
    pending_identities: PendingIdentities,
    registration: IdentityRegistration,
    completion: LoginCompletion,
    visitor: Visitor,
    recent: RecentAuthentication,
    closed_account: ClosedAccountView,
) -> Blueprint:
    routes = Blueprint("upstream", __name__)

    @routes.get("/login/upstream/<provider_id>")
    async def begin(provider_id: str) -> Response:
        """Redirects to the provider. A link may start this: the answer is accepted only from the same browser."""
        next_path = safe_next(request.args["next"]) if request.args.get("next") else ""
        try:
            await view.count_request()
        except TooManyAttempts as error:
            return await view.show_too_many(error, next_path)
        return await view.redirect_to_provider(await sign_in.provider(provider_id), next_path)

    @routes.get("/login/upstream/<provider_id>/callback")
    async def callback(provider_id: str) -> Response:
        try:
            await view.count_request()
        except TooManyAttempts as error:
            return await view.show_too_many(error)
        provider = await sign_in.provider(provider_id)
        browser_secret = read_cookie(UPSTREAM_COOKIE)
        begun: BegunAttempt | None = None
        try:
            answer = _parameters()
            begun = await sign_in.use_attempt(provider, browser_secret, answer.get("state", ""))
            outcome = await sign_in.finish(provider, begun, browser_secret, answer, await visitor.session())
            return await show(outcome, provider)
        except AccountClosed as closed:
            return await closed_account.show(closed, begun.next_path if begun else None)
        except InvalidCredentials:
            return await view.show_failure(provider, AttemptExpired("the user was revoked in the meantime"), begun)
        except UpstreamError as error:
            return await view.show_failure(provider, error, begun)

    async def show(outcome: UpstreamOutcome, provider: IdentityProvider) -> Response:
        match outcome:
            case UserIdentified(user, needs_code, next_path, is_new_login):
                # The provider may not have asked anything. Then a site that wants a new login asks for it, and so do
                # important changes of users who have a password.
                signed_in = SignedIn(user, by_provider(is_new_login=is_new_login))
                if needs_code or await completion.must_prove_second_factor(signed_in):
                    return await completion.ask_for_code(user, next_path, UPSTREAM_AUTH)
                session = await completion.start_session(signed_in)
                # The login page continues the flow. A game still asks: a link must not confirm it by itself.
                return completion.redirect(session, "/login" + next_query(next_path))
            case IdentityLinked():
                return see_other(account_url("identity-linked"))
            case IdentityBelongsToOther(can_decide=True):
                return see_other(CONFLICT_PATH)
            case IdentityBelongsToOther():
                text = Text(BELONGS_TO_OTHER, provider=provider.name)
                return await show_problem(_("Already linked"), text, 409, "/account")
            case LinkingUserRevoked():
                return await show_problem(_("Not linked"), NOT_LINKED, 409, "/account")
            case IdentityUnknown():
                return see_other(UNKNOWN_PATH)
            case _:
                assert_never(outcome)

    @routes.get(UNKNOWN_PATH)
    async def unknown_identity() -> Response:
        """Shows what to do with an identity that is not linked. Whether its e-mail has an account is not disclosed."""
        pending = await pending_identities.get(read_cookie(UPSTREAM_COOKIE))
        return see_other("/login") if pending is None else await show_unknown(pending, pending.identity.name)

    @routes.post("/login/identity/create")
    async def create() -> Response:
        form = await form_fields()
        browser_secret = read_cookie(UPSTREAM_COOKIE)
        check_csrf(browser_secret, form.get("csrf"))
        pending = await pending_identities.get(browser_secret)
        if pending is None:
            return see_other("/login")
        if form.get("identity") != pending.form_id:
            return await show_unknown(pending, pending.identity.name, problem=REPLACED, status=409)
        try:
            nick = parse_nickname(form.get("nick", ""))
        except InvalidNickname as error:
            return await show_unknown(
                pending, form.get("nick", ""), problem=error.text, wrong="nick", form=form, status=422
            )
        if problem := registration.terms.problem(form):
            return await show_unknown(
                pending, nick, problem=problem.text, wrong=problem.field, form=form, status=problem.status
            )
        try:
            await view.count_request()
            provider = await sign_in.provider(pending.provider_id)
            flow = await view.flow(pending.next_path)
            user = await registration.create(
                provider, browser_secret, pending, nick, current_language.get(), flow.guest if flow else None
            )
        except TooManyAttempts as error:
            return await show_unknown(pending, nick, problem=retry_message(error), status=429, headers=error.headers)
        except AccountExists:
            return await show_unknown(pending, nick, problem=ACCOUNT_EXISTS, status=409)
        if user is None:
            return see_other(UNKNOWN_PATH)
        stated = pending.identity.auth_time
        authentication = by_earlier_provider_login(datetime.fromtimestamp(stated, UTC) if stated else None)
        session = await completion.start_session(SignedIn(user, authentication))
        return completion.redirect(session, "/login" + next_query(pending.next_path))

    async def show_unknown(pending: PendingIdentity, nick: str, **context: Any) -> Response:
        provider = await sign_in.provider(pending.provider_id)
        flow = await view.flow(pending.next_path)
        if flow is not None and flow.guest is not None:  # who becomes the account: say which game asks
            context = {**flow.details(client_address()), **context}
        return await page(
            "unknown_identity.html",
            page_title=_("No account yet"),
            form_targets=await view.form_targets(pending.next_path),
            csrf=csrf_token(read_cookie(UPSTREAM_COOKIE)),
            provider=provider.name,
            identity=pending.identity.name,
            form_id=pending.form_id,
            nick=nick,
            email=registration.verified_address(provider, pending),
            register_url=f"/register?next={LINK_PATH}" if registration.is_open else "",
            link_url=f"/login?next={LINK_PATH}",
            cancel_url="/login" + next_query(pending.next_path),
            **context,
        )

    @routes.get(LINK_PATH)
    async def link_form() -> Response:
        session, pending = await visitor.session(), await pending_identities.get(read_cookie(UPSTREAM_COOKIE))
        if pending is None:
            return see_other("/account" if session else "/login")
        if session is None or not recent.is_recent(session):
            return see_other(f"/login?next={LINK_PATH}")
        return await show_link(session, pending)

    async def show_link(session: Session, pending: PendingIdentity, problem: Text | None = None) -> Response:
        provider = await sign_in.provider(pending.provider_id)
        return await page(
            "link_identity.html",
            status=409 if problem else 200,
            problem=problem,
            page_title=_("Link your accounts"),
            form_targets=await view.form_targets(pending.next_path),
            user=session.user,
            csrf=csrf_token(session.secret),
            provider=provider.name,
            identity=pending.identity.name,
            form_id=pending.form_id,
            action=LINK_PATH,
        )

    @routes.post(LINK_PATH)
    async def link() -> Response:
        form = await form_fields()
        session = await visitor.session()
        if session is None or not recent.is_recent(session):
            return see_other(f"/login?next={LINK_PATH}")
        check_csrf(session.secret, form.get("csrf"))
        browser_secret = read_cookie(UPSTREAM_COOKIE)
        pending = await pending_identities.get(browser_secret)
        if pending is None:
            return see_other("/account")
        if form.get("identity") != pending.form_id:
            return await show_link(session, pending, REPLACED)
        if not await pending_identities.use(browser_secret, pending):
            return see_other(LINK_PATH)
        provider = await sign_in.provider(pending.provider_id)
        outcome = await sign_in.link(session, provider, pending.identity)
        if isinstance(outcome, IdentityLinked) and pending.next_path not in ("", "/account"):
            return see_other("/login" + next_query(pending.next_path))
        return await show(outcome, provider)

    return routes


def _parameters() -> Mapping[str, str]:
    """Returns the parameters of the answer. A repeated one could be read in two ways, so it is refused."""
    try:
        query = request.query_string.decode("ascii")
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS)
    except ValueError:
        raise InvalidAnswer("answer: cannot be read") from None
    if len(dict(pairs)) != len(pairs):
        raise InvalidAnswer("answer: a parameter appears twice")
    return dict(pairs)
