"""The login pages: password, second factor and logout. Plain HTML forms; each step replaces the cookie."""

from functools import partial
from typing import Any

from quart import Blueprint, Response, request

from sso.accounts.authentication_context import by_first_factor
from sso.accounts.errors import AccountClosed, InvalidCredentials, SecondFactorBlocked
from sso.accounts.form_problem import FormProblem
from sso.accounts.known_devices import KnownDevices
from sso.accounts.login.ended_session import signed_out_notice
from sso.accounts.login.flow import LoginFlow, LoginFlows, form_targets_of_path
from sso.accounts.login.form import LoginForm
from sso.accounts.login.messages import (
    BLOCKED,
    EXPIRED,
    PROVE_AGAIN,
    WRONG_PASSKEY,
    WRONG_PASSWORD,
    mail_code,
    mask_email,
    next_mail_text,
    retry_message,
    wrong_code_message,
)
from sso.accounts.login.password_login import PasswordLogin
from sso.accounts.login.view import ClosedAccountView, LoginCompletion, next_query
from sso.accounts.model import SecondFactorRequired, SignedIn, User, login_key
from sso.accounts.passkeys.authentication import PasskeyAuthentication
from sso.accounts.second_factor.codes import SecondFactors
from sso.accounts.session_store import Session, SessionStore
from sso.accounts.terms.terms import TERMS_PATH
from sso.accounts.visitor import Visitor
from sso.core.errors import RetryLater
from sso.web import language
from sso.web.client_connection import client_connection
from sso.web.cookies import (
    IMPERSONATION_COOKIE,
    SESSION_COOKIE,
    VISIT_COOKIE,
    delete_cookie,
    read_cookie,
    read_device_cookie,
)
from sso.web.csrf import check_csrf, csrf_token, is_own_form
from sso.web.language import _
from sso.web.pages import form_fields, page
from sso.web.redirects import safe_next, see_other
from sso.web.request import client_address


def login_pages(
    visitor: Visitor,
    password_login: PasswordLogin,
    factors: SecondFactors,
    sessions: SessionStore,
    devices: KnownDevices,
    login_flows: LoginFlows,
    login_form: LoginForm,
    completion: LoginCompletion,
    passkeys: PasskeyAuthentication,
    closed_account: ClosedAccountView,
) -> Blueprint:
    routes = Blueprint("login_pages", __name__)

    async def find_flow(next_path: str | None, *, remembered: bool = False) -> LoginFlow | None:
        flow = await login_flows.find(safe_next(next_path), remembered=remembered) if next_path else None
        if flow:
            language.use_ui_locales(flow.ui_locales)
        return flow

    async def known_device(account: str) -> str:
        return await devices.recognize_browser(account, read_device_cookie())

    @routes.get("/")
    async def start_page() -> Response:
        """Shows the login form of a flow that starts here, such as a link from a game."""
        flow = await login_flows.find(f"/?{request.query_string.decode('latin-1')}")
        session = await visitor.session(may_accept=True)
        if flow is None:
            return see_other("/account" if session else "/login")
        language.use_ui_locales(flow.ui_locales)
        if session:
            return continue_in(session, flow.continue_path)
        return await login_form.show(flow, notice=await signed_out_notice(sessions))

    @routes.get("/login")
    async def show_form() -> Response:
        next_path = request.args.get("next")
        flow = await find_flow(next_path)
        session = await visitor.session(may_accept=True)
        if session and (flow is None or flow.accepts(session)):
            return continue_in(session, flow.continue_path if flow else safe_next(next_path))
        proof = PROVE_AGAIN if session and flow and flow.lacks_proof(session) else None
        return await login_form.show(flow, next_path, notice=proof if session else await signed_out_notice(sessions))

    @routes.post("/login")
    async def login() -> Response:
        form = await form_fields()
        check_csrf(read_cookie(VISIT_COOKIE), form.get("csrf"))
        flow = await find_flow(form.get("next"), remembered=True)
        if flow:
            await flow.report_stage("signing_in")
        login_name, password = form.get("login", "").strip(), form.get("password", "")
        try:
            with client_connection().cancel_on_disconnect():  # do not hash a password after the client has disconnected
                outcome = await check_password(login_name, password, flow)
        except InvalidCredentials:
            return await login_form.show(flow, form.get("next"), login=login_name, problem=WRONG_PASSWORD, status=401)
        except RetryLater as error:
            problem = retry_message(error)
            return await login_form.show(
                flow, form.get("next"), login=login_name, problem=problem, status=error.status, headers=error.headers
            )
        except AccountClosed as closed:
            return await closed_account.show(closed, form.get("next"))
        if isinstance(outcome, SecondFactorRequired):
            return await ask_for_code(outcome.user, form.get("next"))
        if isinstance(outcome, SignedIn):
            return await finish_login(outcome, flow, form.get("next"))
        return await continue_with(outcome, flow, form.get("next"))

    @routes.post("/login/passkey")
    async def passkey_login() -> Response:
        form = await form_fields()
        visit, next_path = read_cookie(VISIT_COOKIE), form.get("next")
        check_csrf(visit, form.get("csrf"))
        flow = await find_flow(next_path)
        try:
            signed_in = await passkeys.sign_in(form.get("credential", ""), visit, client_address())
            language.use_user_language(signed_in.user.lang)
            success = password_login.rate_limiter.passkey_columns(signed_in.user)
            return await finish_login(signed_in, flow, next_path, success)
        except InvalidCredentials:
            return await login_form.show(flow, next_path, problem=WRONG_PASSKEY, status=401)
        except RetryLater as error:
            problem = retry_message(error)
            return await login_form.show(flow, next_path, problem=problem, status=error.status, headers=error.headers)

    @routes.get("/login/code")
    async def code_form() -> Response:
        challenge = await sessions.find_challenge(read_cookie(VISIT_COOKIE))
        if challenge is None:
            return see_other("/login" + next_query(request.args.get("next")))
        return await show_code_form(challenge.user, request.args.get("next"))

    @routes.post("/login/code")
    async def code() -> Response:
        form = await form_fields()
        secret = read_cookie(VISIT_COOKIE)
        check_csrf(secret, form.get("csrf"))
        challenge = await sessions.find_challenge(secret)
        if challenge is None:
            flow = await find_flow(form.get("next"))
            return await login_form.show(flow, form.get("next"), problem=EXPIRED, status=401)
        user = challenge.user
        code = form.get("otp", "")
        try:
            device, first = await known_device(user.login_key), by_first_factor(challenge.auth)
            signed_in = await password_login.check_code(user, code, client_address(), device, first)
        except InvalidCredentials:
            problem = wrong_code_message(factors, user, code)
            return await show_code_form(user, form.get("next"), problem=problem, status=401)
        except SecondFactorBlocked as error:
            return await show_code_form(user, form.get("next"), problem=BLOCKED, status=error.status)
        except RetryLater as error:
            return await show_code_form(
                user, form.get("next"), problem=retry_message(error), status=error.status, headers=error.headers
            )
        return await finish_login(signed_in, await find_flow(form.get("next")), form.get("next"))

    @routes.post("/login/code/passkey")
    async def second_factor_passkey() -> Response:
        form = await form_fields()
        secret, next_path = read_cookie(VISIT_COOKIE), form.get("next")
        check_csrf(secret, form.get("csrf"))
        challenge = await sessions.find_challenge(secret)
        if challenge is None:
            return await login_form.show(await find_flow(next_path), next_path, problem=EXPIRED, status=401)
        try:
            credential = form.get("credential", "")
            await passkeys.check_second_factor(challenge.user, credential, secret, client_address())
        except InvalidCredentials:
            return await show_code_form(challenge.user, next_path, problem=WRONG_PASSKEY, status=401)
        except RetryLater as error:
            return await show_code_form(
                challenge.user, next_path, problem=retry_message(error), status=error.status, headers=error.headers
            )
        signed_in = SignedIn(challenge.user, by_first_factor(challenge.auth).with_passkey())
        return await finish_login(signed_in, await find_flow(next_path), next_path)

    @routes.post("/login/code/resend")
    async def resend() -> Response:
        form = await form_fields()
        secret = read_cookie(VISIT_COOKIE)
        check_csrf(secret, form.get("csrf"))
        challenge = await sessions.find_challenge(secret)
        if challenge is None:
            return see_other("/login" + next_query(form.get("next")))
        outcome = await mail_code(factors, challenge.user)
        if isinstance(outcome, FormProblem):
            told: dict[str, Any] = {"problem": outcome.text, "status": outcome.status, "headers": outcome.headers}
            return await show_code_form(challenge.user, form.get("next"), **told)
        return await show_code_form(challenge.user, form.get("next"), notice=outcome)

    @routes.post("/logout")
    async def logout() -> Response:
        form = await form_fields()
        response = see_other("/login" + next_query(form.get("next")))
        session, visit = await visitor.session(may_enrol=True, may_accept=True), read_cookie(VISIT_COOKIE)
        if session and is_own_form(visit, form.get("csrf")):  # at the second factor
            await sessions.drop_challenge(visit)
            flow = await find_flow(form.get("next"))
            # The sign-in form is shown, and the earlier session goes on.
            refusing = flow if flow and not flow.accepts(session) else None
            if refusing:
                await refusing.use_another_account(session)
            if refusing or session.must_enrol:
                delete_cookie(response, VISIT_COOKIE)
                return response
        elif session:
            check_csrf(session.secret, form.get("csrf"))
        if session:
            await sessions.end(session.user.user_id, session.id)
        elif visit:
            check_csrf(visit, form.get("csrf"))
            await sessions.drop_challenge(visit)
        else:
            return response  # a form of another site is sent without our cookies and must not delete them
        for name in (SESSION_COOKIE, IMPERSONATION_COOKIE, VISIT_COOKIE):
            delete_cookie(response, name)
        return response

    def continue_in(session: Session, path: str) -> Response:
        """Redirects a browser that is signed in already, first to the terms if their version has changed."""
        return see_other(TERMS_PATH + next_query(path) if session.must_accept else path)

    async def check_password(
        login_name: str, password: str, flow: LoginFlow | None
    ) -> SignedIn | Session | SecondFactorRequired:
        credentials = (login_name, password, client_address(), await known_device(login_key(login_name)))
        if read_cookie(SESSION_COOKIE):  # the old session ends only after the login is known to succeed
            return await password_login.check_password(*credentials)
        return await password_login.start_session(*credentials, partial(completion.start_session, flow=flow))

    async def ask_for_code(user: User, next_path: str | None) -> Response:
        response = await completion.ask_for_code(user, next_path)
        if flow := await find_flow(next_path):
            await flow.report_stage("second_factor")
        return response

    async def show_code_form(user: User, next_path: str | None, status: int = 200, **context: Any) -> Response:
        flow = await find_flow(next_path)
        context = await mail_state(user) | context
        return await page(
            "second_factor.html",
            status=status,
            page_title=_("Second step"),
            site=flow.title if flow else "",
            **(flow.details(client_address()) if flow else {}),
            form_targets=flow.form_targets if flow else await form_targets_of_path(login_flows, next_path),
            site_brand=flow.site_brand if flow else None,
            csrf=csrf_token(read_cookie(VISIT_COOKIE)),
            action="/login/code",
            resend_action="/login/code/resend",
            next=safe_next(next_path) if next_path else "",
            second_factors=user.second_factors,
            passkey_options=await passkeys.second_factor_options(user, read_cookie(VISIT_COOKIE)),
            email_hint=mask_email(user.login),
            **context,
        )

    async def mail_state(user: User) -> dict[str, Any]:
        """Returns the template values that say when the next code can be mailed, or that none is mailed any more."""
        if not user.email_2fa:
            return {}
        try:
            wait_s = await factors.code_wait(user)
        except SecondFactorBlocked:
            return {"mail_blocked": True, "problem": BLOCKED}
        return {"next_mail": next_mail_text(wait_s)} if wait_s else {}

    async def finish_login(
        signed_in: SignedIn, flow: LoginFlow | None, next_path: str | None, success: dict[str, Any] | None = None
    ) -> Response:
        try:
            session = await completion.start_session(signed_in, success)
        except AccountClosed as closed:
            return await closed_account.show(closed, next_path)
        return await continue_with(session, flow, next_path)

    async def continue_with(session: Session, flow: LoginFlow | None, next_path: str | None) -> Response:
        if flow is None:
            return completion.redirect(session, safe_next(next_path))
        if not session.is_usable:
            return completion.redirect(session, "/login" + next_query(next_path))
        return completion.redirect(session, await flow.complete(session))

    return routes
