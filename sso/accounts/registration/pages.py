"""The pages of a registration: e-mail address, code, then nickname and password. Opening a link changes nothing."""

from typing import Any, assert_never

from quart import Blueprint, Response, request

from sso.accounts.account_page.notices import account_url
from sso.accounts.authentication_context import by_password
from sso.accounts.errors import TooManyAttempts
from sso.accounts.guest_upgrade_store import GuestLink
from sso.accounts.login.flow import LoginFlow, LoginFlows
from sso.accounts.login.messages import NOT_AN_ADDRESS, retry_message
from sso.accounts.login.view import LoginCompletion, next_query
from sso.accounts.model import SignedIn, User, typed_login
from sso.accounts.nickname import InvalidNickname, parse_nickname
from sso.accounts.password_rules import UnacceptablePassword
from sso.accounts.registration import view
from sso.accounts.registration.challenge import RegistrationChallenge
from sso.accounts.registration.completion import LinkExpired, LoginTaken, RegistrationLink
from sso.accounts.registration.verification import was_requested_by
from sso.accounts.registration.wiring import UserRegistration
from sso.accounts.visitor import Visitor
from sso.core.errors import ApiError, RetryLater
from sso.core.language import Text, current_language, plural
from sso.web import language
from sso.web.client_connection import client_connection
from sso.web.cookies import VISIT_COOKIE, is_secret, read_cookie
from sso.web.csrf import check_csrf
from sso.web.language import _
from sso.web.pages import form_fields
from sso.web.redirects import DEFAULT_PATH, safe_next, see_other
from sso.web.request import client_address

WRONG_CODE = _(
    "This code is incorrect or no longer works. Check it, open the link in the e-mail instead, or ask for a new e-mail."
)


def registration_pages(
    registration: UserRegistration,
    challenge: RegistrationChallenge,
    visitor: Visitor,
    login_flows: LoginFlows,
    login_completion: LoginCompletion,
) -> Blueprint:
    routes = Blueprint("registration", __name__)
    verification, completion = registration.verification, registration.completion

    @routes.get("/register")
    async def register() -> Response:
        if (token := request.args.get("token")) is not None:
            return await open_link(token)
        if registration.mode != "open":
            return await view.show_refusal(registration.mode)
        next_path = request.args.get("next")
        flow = await find_flow(next_path)
        session = await visitor.session()
        if session and (flow is None or flow.accepts(session)):
            return see_other(flow.continue_path if flow else safe_next(next_path))
        email = await verification.pending_login(read_cookie(VISIT_COOKIE)) or (flow.login_hint if flow else "")
        return await view.show_email_form(challenge, flow, next_path, {"email": email})

    @routes.post("/register")
    async def send_mail() -> Response:
        form = await form_fields()
        visit = read_cookie(VISIT_COOKIE)
        check_csrf(visit, form.get("csrf"))
        if registration.mode != "open":
            return await view.show_refusal(registration.mode)
        next_path = form.get("next")
        flow = await find_flow(next_path)
        login = typed_login(form.get("email", ""))
        if login is None:
            return await view.show_email_form(challenge, flow, next_path, form, problem=NOT_AN_ADDRESS, status=422)
        if wait_s := await registration.rate.add(client_address()):
            error = TooManyAttempts(wait_s)
            return await view.show_email_form(
                challenge, flow, next_path, form, problem=retry_message(error), status=429, headers=error.headers
            )
        if problem := await challenge.verify(form, client_address()):
            return await view.show_email_form(challenge, flow, next_path, form, problem=problem, status=422)
        if flow:
            await flow.report_stage("signing_in")
        path = safe_next(next_path) if next_path else ""
        if wait_s := await verification.send_mail(login, visit, path, current_language.get()):
            return await view.show_email_form(
                challenge,
                flow,
                next_path,
                {"email": login},
                problem=_too_many_mails(wait_s),
                status=429,
                headers={"Retry-After": str(wait_s)},
            )
        return see_other(f"/register/code{next_query(next_path)}")

    @routes.get("/register/code")
    async def code_form() -> Response:
        next_path = request.args.get("next")
        login = await verification.pending_login(read_cookie(VISIT_COOKIE))
        if login is None or registration.mode != "open":
            return see_other(f"/register{next_query(next_path)}")
        return await view.show_code_form(await find_flow(next_path), next_path, login)

    @routes.post("/register/code")
    async def check_code() -> Response:
        form = await form_fields()
        visit, next_path = read_cookie(VISIT_COOKIE), form.get("next")
        check_csrf(visit, form.get("csrf"))
        login = await verification.pending_login(visit)
        if login is None or registration.mode != "open":
            return see_other(f"/register{next_query(next_path)}")
        code = form.get("otp", "").replace(" ", "")
        token = await verification.exchange_code(visit, code, safe_next(next_path) if next_path else "")
        if token:
            return see_other(f"/register?token={token}")
        flow = await find_flow(next_path)
        return await view.show_code_form(flow, next_path, login, problem=WRONG_CODE, status=422)

    @routes.post("/register/complete")
    async def complete() -> Response:
        form = await form_fields()
        check_csrf(read_cookie(VISIT_COOKIE), form.get("csrf"))
        link = await find_link(form.get("token", ""))
        if not isinstance(link, RegistrationLink):
            return link
        try:
            nick = parse_nickname(form.get("nick", ""))
        except InvalidNickname as error:
            return await show_completion_form(link, form, problem=error.text, wrong="nick", status=422)
        if problem := registration.terms.problem(form):
            return await show_completion_form(link, form, problem=problem.text, wrong=problem.field, status=422)
        password = form.get("password", "")
        try:
            with client_connection().cancel_on_disconnect():  # do not hash a password after the client has disconnected
                guest = await guest_of(link)
                outcome = await completion.create_user(
                    link, nick, password, current_language.get(), client_address(), guest
                )
        except UnacceptablePassword as error:
            return await show_completion_form(link, form, problem=error.text, wrong="password", status=422)
        except RetryLater as error:
            return await show_completion_form(
                link, form, problem=retry_message(error), status=error.status, headers=error.headers
            )
        match outcome:
            case User():
                return await sign_in(outcome, link)
            case LinkExpired():
                return await view.show_expired_link()
            case LoginTaken():
                return await view.show_login_taken()
            case _:
                assert_never(outcome)

    async def find_flow(next_path: str | None) -> LoginFlow | None:
        """Returns the flow at this path, or None if it has ended, as it may before a mail is read."""
        try:
            flow = await login_flows.find(safe_next(next_path)) if next_path else None
        except ApiError:
            return None
        if flow:
            language.use_ui_locales(flow.ui_locales)
        return flow

    async def guest_of(link: RegistrationLink) -> GuestLink | None:
        """Returns the guest that becomes the account, in the browser that has asked for the link."""
        flow = await find_flow(link.next_path)
        return flow.guest if flow and was_requested_by(link.link, read_cookie(VISIT_COOKIE)) else None

    async def find_link(token: str) -> RegistrationLink | Response:
        """Returns the link, or the page that says why it cannot be used."""
        if registration.mode == "closed":
            return await view.show_refusal(registration.mode)
        link = await completion.find(token) if is_secret(token) else None
        if link is None:
            return await view.show_expired_link()
        return await view.show_login_taken() if await completion.is_login_taken(link) else link

    async def open_link(token: str) -> Response:
        link = await find_link(token)
        return await show_completion_form(link, {}) if isinstance(link, RegistrationLink) else link

    async def show_completion_form(link: RegistrationLink, form: dict[str, str], **context: Any) -> Response:
        flow, may_complete = await find_flow(link.next_path), was_requested_by(link.link, read_cookie(VISIT_COOKIE))
        nick = form.get("nick", "")
        try:
            return await view.show_completion_form(
                link, flow, may_complete=may_complete, nick=nick, form=form, **context
            )
        except ApiError:  # the game session was answered in another window
            return await view.show_completion_form(link, None, may_complete=False, nick=nick, form=form, **context)

    async def sign_in(user: User, link: RegistrationLink) -> Response:
        """Starts a session and continues the flow.

        The flow is completed only in the browser that has asked for the link, where the form shows what it is about.
        Otherwise a stranger could ask for a link whose flow signs in a game of theirs. Elsewhere the user is asked.
        """
        flow, is_same_browser = await find_flow(link.next_path), was_requested_by(link.link, read_cookie(VISIT_COOKIE))
        session = await login_completion.start_session(SignedIn(user, by_password()))
        if flow and not session.is_usable:
            path = "/login" + next_query(link.next_path)
        elif flow:
            path = await flow.complete(session) if is_same_browser else flow.continue_path
        elif not link.next_path or link.next_path.startswith(DEFAULT_PATH):
            path = account_url("registered")
        else:
            path = account_url("registered-flow-ended")
        return login_completion.redirect(session, path)

    return routes


def _too_many_mails(wait_s: int) -> Text:
    return plural(
        "We have already sent several e-mails to this address. Their links work for a day: use one of them, or ask for "
        "another e-mail in a minute.",
        "We have already sent several e-mails to this address. Their links work for a day: use one of them, or ask for "
        "another e-mail in %(count)s minutes.",
        -(-wait_s // 60),
    )
