"""/forgot: asks for a link by mail. /reset: sets a new password with it.

The link in the mail stores its secret in a cookie and redirects, so that the address of the page with the form contains
no secret, and no later request can carry one in its Referer header.
"""

from quart import Blueprint, Response, request

from sso.accounts.account_page.notices import account_url
from sso.accounts.authentication_context import AuthenticationContext, by_mailed_link
from sso.accounts.errors import AccountClosed, InvalidCredentials, SecondFactorBlocked, TooManyAttempts
from sso.accounts.form_problem import FormProblem
from sso.accounts.known_devices import KnownDevices
from sso.accounts.login.flow import LoginFlows, form_targets_of_path
from sso.accounts.login.messages import NOT_AN_ADDRESS, PASSWORDS_DIFFER, WRONG_PASSKEY, code_problem, retry_problem
from sso.accounts.login.password_login import PasswordLogin
from sso.accounts.login.view import ClosedAccountView, LoginCompletion, next_query
from sso.accounts.model import SignedIn, User, typed_login
from sso.accounts.passkeys.authentication import PasskeyAuthentication
from sso.accounts.password_reset.requests import LINK_S, ResetRequest, ResetRequests
from sso.accounts.password_reset.reset import PasswordReset, PendingReset
from sso.accounts.password_rules import MIN_LENGTH, UnacceptablePassword
from sso.accounts.second_factor.codes import SecondFactors
from sso.accounts.session_store import Session
from sso.core.errors import ApiError, RetryLater
from sso.core.language import current_language
from sso.db.rate_limit import RateLimiter
from sso.web import language
from sso.web.client_connection import client_connection
from sso.web.cookies import (
    RESET_COOKIE,
    VISIT_COOKIE,
    delete_cookie,
    is_secret,
    read_cookie,
    read_device_cookie,
    set_cookie,
    visit_secret,
)
from sso.web.csrf import check_csrf, csrf_token
from sso.web.language import _
from sso.web.pages import form_fields, page
from sso.web.redirects import safe_next, see_other
from sso.web.request import client_address

LINK_INVALID = _("This link no longer works. It may have been used already, or it has expired.")


def password_reset_pages(
    requests: ResetRequests,
    reset: PasswordReset,
    password_login: PasswordLogin,
    factors: SecondFactors,
    passkeys: PasskeyAuthentication,
    devices: KnownDevices,
    login_flows: LoginFlows,
    completion: LoginCompletion,
    closed_account: ClosedAccountView,
    rate_limiter: RateLimiter,
) -> Blueprint:
    routes = Blueprint("password_reset", __name__)

    @routes.get("/forgot")
    async def forgot_form() -> Response:
        return await show_forgot_form(request.args.get("next"))

    @routes.post("/forgot")
    async def forgot() -> Response:
        """The response is the same for every address, whether or not it has an account."""
        form = await form_fields()
        check_csrf(read_cookie(VISIT_COOKIE), form.get("csrf"))
        next_path, login = form.get("next"), form.get("login", "").strip()
        if typed_login(login) is None:
            return await show_forgot_form(next_path, login, FormProblem(NOT_AN_ADDRESS))
        try:
            if wait_s := await rate_limiter.add(client_address()):
                raise TooManyAttempts(wait_s)
            continue_at = safe_next(next_path) if next_path else ""
            requests.submit(ResetRequest(login, continue_at, current_language.get()))
        except RetryLater as error:
            return await show_forgot_form(next_path, login, retry_problem(error))
        return await page(
            "forgot_sent.html",
            page_title=_("Check your e-mail"),
            login=login,
            minutes=LINK_S // 60,
            next=safe_next(next_path) if next_path else "",
        )

    @routes.get("/reset")
    async def reset_form() -> Response:
        token = request.args.get("token")
        if token and is_secret(token):
            response = see_other("/reset")
            set_cookie(response, RESET_COOKIE, token)
            return response
        pending = await reset.find(read_cookie(RESET_COOKIE))
        return await show_reset_form(pending) if pending else await show_invalid_link()

    @routes.post("/reset")
    async def set_password() -> Response:
        form = await form_fields()
        secret = read_cookie(RESET_COOKIE)
        check_csrf(secret, form.get("csrf"))
        if (pending := await reset.find(secret)) is None:
            return await show_invalid_link()
        password_hash = await new_password_hash(pending, form)
        if isinstance(password_hash, FormProblem):
            return await show_reset_form(pending, password_hash)
        authentication = await check_second_factor(pending, form)
        if isinstance(authentication, FormProblem):
            return await show_reset_form(pending, authentication)
        user = await reset.complete(secret, pending, password_hash)
        if user is None:
            return await show_invalid_link()
        response = await sign_in(SignedIn(user, authentication), pending)
        delete_cookie(response, RESET_COOKIE)
        return response

    async def sign_in(signed_in: SignedIn, pending: PendingReset) -> Response:
        user = signed_in.user
        if not user.can_be_kept and await completion.must_prove_second_factor(signed_in):
            # Without the flow, for the reason in `continue_path`: the sign-in would complete it.
            return await completion.ask_for_second_factor(signed_in, account_url("password"))
        try:
            session = await completion.start_session(signed_in)
        except AccountClosed as closed:
            return await closed_account.show(closed, pending.next_path)
        return completion.redirect(session, await continue_path(pending, session))

    async def new_password_hash(pending: PendingReset, form: dict[str, str]) -> str | FormProblem:
        """Checks the new password before the code, which can be used only once."""
        new, user = form.get("new_password", ""), pending.user
        if new != form.get("repeat_password", ""):
            return PASSWORDS_DIFFER
        try:
            with client_connection().cancel_on_disconnect():
                return await password_login.hash_new_password(new, user.login, user.nick, client_address())
        except UnacceptablePassword as error:
            return FormProblem(error.text, field="new_password")
        except RetryLater as error:
            return retry_problem(error, "new_password")

    async def check_second_factor(pending: PendingReset, form: dict[str, str]) -> AuthenticationContext | FormProblem:
        """Returns what the link and the form have proved. A guess is counted and limited as at a login."""
        owner = pending.factor_owner
        if not owner.second_factors:
            return by_mailed_link()
        if credential := form.get("credential"):
            return await passkey_problem(owner, credential) or by_mailed_link().with_passkey()
        code = form.get("otp", "")
        device = await devices.recognize_browser(owner.login_key, read_device_cookie())
        try:
            checked = await password_login.check_code(owner, code, client_address(), device, by_mailed_link())
        except (InvalidCredentials, SecondFactorBlocked, RetryLater) as error:
            return code_problem(error, factors, owner, code, "otp")
        return checked.authentication

    async def passkey_problem(owner: User, credential: str) -> FormProblem | None:
        try:
            await passkeys.check_second_factor(owner, credential, read_cookie(RESET_COOKIE), client_address())
        except InvalidCredentials as error:
            return FormProblem(WRONG_PASSKEY, error.status, field="otp")
        except RetryLater as error:
            return retry_problem(error, "otp")
        return None

    async def continue_path(pending: PendingReset, session: Session) -> str:
        """Returns where the player came from.

        The flow continues there with its question. It is not completed here: a stranger may have asked for the link,
        with a flow of their own.
        """
        if session.must_enrol:
            return "/login" + next_query(pending.next_path)
        try:
            flow = await login_flows.find(safe_next(pending.next_path)) if pending.next_path else None
        except ApiError:  # the flow has ended
            return account_url("password")
        if flow:
            return flow.continue_path
        return safe_next(pending.next_path) if pending.next_path else account_url("password")

    async def show_forgot_form(next_path: str | None, login: str = "", problem: FormProblem | None = None) -> Response:
        secret, is_new = visit_secret()
        response = await page(
            "forgot.html",
            status=problem.status if problem else 200,
            headers=problem.headers if problem else None,
            problem=problem.text if problem else None,
            page_title=_("Forgot your password?"),
            csrf=csrf_token(secret),
            next=safe_next(next_path) if next_path else "",
            login=login,
            minutes=LINK_S // 60,
        )
        if is_new:
            set_cookie(response, VISIT_COOKIE, secret)
        return response

    async def show_reset_form(pending: PendingReset, problem: FormProblem | None = None) -> Response:
        language.use_user_language(pending.user.lang)
        return await page(
            "reset.html",
            status=problem.status if problem else 200,
            headers=problem.headers if problem else None,
            problem=problem.text if problem else None,
            problem_field=problem.field if problem else "",
            page_title=_("Choose a new password"),
            form_targets=await form_targets_of_path(login_flows, pending.next_path),
            csrf=csrf_token(read_cookie(RESET_COOKIE)),
            login=pending.user.login,
            second_factors=pending.factor_owner.second_factors,
            passkey_options=await passkeys.second_factor_options(pending.user, read_cookie(RESET_COOKIE)),
            password_min=MIN_LENGTH,
        )

    async def show_invalid_link() -> Response:
        return await page(
            "message.html",
            status=410,
            page_title=_("Link expired"),
            heading=_("Choose a new password"),
            problem=LINK_INVALID,
            message=_("You can ask for a new link."),
            link="/forgot",
            link_text=_("Get a new link"),
        )

    return routes
