"""Signing in with a browser: the form, the second factor, signing out. Plain HTML; the cookie changes at every step."""

from typing import Any
from urllib.parse import quote

from quart import Blueprint, Response, request

from sso.accounts.errors import InvalidCredentials, LoginBusy, SecondFactorBlocked
from sso.accounts.known_devices import KnownDevices
from sso.accounts.login_flow import LoginFlow, LoginFlows
from sso.accounts.login_form import show_login_form
from sso.accounts.model import SecondFactorRequired, SignedIn, User, login_key
from sso.accounts.password_login import PasswordLogin
from sso.accounts.second_factor import SecondFactors
from sso.accounts.sessions import SessionStore
from sso.accounts.visitor import Visitor, browser_label, remember_browser
from sso.core.errors import RetryLater
from sso.core.language import Text, either
from sso.web import language
from sso.web.client_connection import client_connection
from sso.web.cookies import SESSION_COOKIE, VISIT_COOKIE, delete_cookie, read_cookie, read_device_cookie, set_cookie
from sso.web.csrf import check_csrf, csrf_token
from sso.web.language import _
from sso.web.pages import form_fields, page
from sso.web.redirects import safe_next, see_other
from sso.web.request import client_address

WRONG = _("The e-mail address or the password is wrong.")
WRONG_CODE = _("That code is not right, or it has been used.")
BLOCKED = _(
    "Codes are no longer accepted for this account after too many wrong ones. Ask the operator to unblock them."
)


def retry_message(error: RetryLater) -> Text:
    if isinstance(error, LoginBusy):
        return _("Too many people are signing in at this moment. Please try again.")
    return either(
        "Too many attempts. Please wait a second and try again.",
        "Too many attempts. Please wait %(count)s seconds and try again.",
        error.retry_after,
    )


def login_pages(
    visitor: Visitor,
    password_login: PasswordLogin,
    factors: SecondFactors,
    sessions: SessionStore,
    devices: KnownDevices,
    journeys: LoginFlows,
    life_s: int,
) -> Blueprint:
    routes = Blueprint("signin", __name__)

    async def journey_to(next_path: str | None) -> LoginFlow | None:
        journey = await journeys.find(safe_next(next_path)) if next_path else None
        if journey:
            language.use_ui_locales(journey.ui_locales)
        return journey

    async def known_device(account: str) -> str:
        return await devices.recognize_browser(account, read_device_cookie())

    @routes.get("/")
    async def front_door() -> Response:
        """Where a journey may begin, with the form on this very page."""
        journey = await journeys.find(f"/?{request.query_string.decode('latin-1')}")
        session = await visitor.session()
        if journey is None:
            return see_other("/account" if session else "/login")
        language.use_ui_locales(journey.ui_locales)
        return see_other(journey.continue_path) if session else await show_login_form(journey)

    @routes.get("/login")
    async def login_form() -> Response:
        next_path = request.args.get("next")
        journey = await journey_to(next_path)
        session = await visitor.session()
        if session and (journey is None or journey.accepts(session)):
            return see_other(journey.continue_path if journey else safe_next(next_path))
        return await show_login_form(journey, next_path)

    @routes.post("/login")
    async def login() -> Response:
        form = await form_fields()
        check_csrf(read_cookie(VISIT_COOKIE), form.get("csrf"))
        journey = await journey_to(form.get("next"))
        if journey:
            await journey.report_stage("signing_in")
        name, password = form.get("login", ""), form.get("password", "")
        try:
            with client_connection().cancel_on_disconnect():  # no password is hashed for a client that has gone
                device_name = await known_device(login_key(name))
                outcome = await password_login.check_password(name, password, client_address(), device_name)
        except InvalidCredentials:
            return await show_login_form(journey, form.get("next"), login=name, problem=WRONG, status=401)
        except RetryLater as error:
            more: dict[str, Any] = {"status": error.status, "headers": error.headers}
            return await show_login_form(journey, form.get("next"), login=name, problem=retry_message(error), **more)
        if isinstance(outcome, SecondFactorRequired):
            return await ask_for_code(outcome.user, form.get("next"))
        return await enter(outcome, journey, form.get("next"))

    @routes.get("/login/code")
    async def code_form() -> Response:
        user = await sessions.challenged_user(read_cookie(VISIT_COOKIE))
        if user is None:
            return see_other("/login")
        return await show_code(user, request.args.get("next"))

    @routes.post("/login/code")
    async def code() -> Response:
        form = await form_fields()
        secret = read_cookie(VISIT_COOKIE)
        check_csrf(secret, form.get("csrf"))
        user = await sessions.challenged_user(secret)
        if user is None:
            late = _("That took too long. Please sign in again.")
            return await show_login_form(await journey_to(form.get("next")), form.get("next"), problem=late, status=401)
        try:
            code = form.get("otp", "").replace(" ", "")
            outcome = await password_login.check_code(user, code, client_address(), await known_device(user.login_key))
        except InvalidCredentials:
            return await show_code(user, form.get("next"), problem=WRONG_CODE, status=401)
        except SecondFactorBlocked as error:
            return await show_code(user, form.get("next"), problem=BLOCKED, status=error.status)
        except RetryLater as error:
            more: dict[str, Any] = {"status": error.status, "headers": error.headers}
            return await show_code(user, form.get("next"), problem=retry_message(error), **more)
        return await enter(outcome, await journey_to(form.get("next")), form.get("next"))

    @routes.post("/login/code/resend")
    async def resend() -> Response:
        form = await form_fields()
        secret = read_cookie(VISIT_COOKIE)
        check_csrf(secret, form.get("csrf"))
        user = await sessions.challenged_user(secret)
        if user is None:
            return see_other("/login")
        if user.email_2fa:
            await factors.send_code(user)
        return await show_code(user, form.get("next"), notice=_("A code was sent. Look into your mailbox."))

    @routes.post("/logout")
    async def logout() -> Response:
        form = await form_fields()
        response = see_other("/login" + _next_query(form.get("next")))
        session = await visitor.session()
        if session:
            check_csrf(session.secret, form.get("csrf"))
            await sessions.end(session.user.user_id, session.id)
        elif visit := read_cookie(VISIT_COOKIE):
            check_csrf(visit, form.get("csrf"))
            await sessions.drop_challenge(visit)
        else:
            return response  # a form of another site comes without our cookies, and must not take them away
        delete_cookie(response, SESSION_COOKIE)
        delete_cookie(response, VISIT_COOKIE)
        return response

    async def ask_for_code(user: User, next_path: str | None) -> Response:
        language.use_user_language(user.lang)
        if user.email_2fa:
            await factors.send_code(user)
        if journey := await journey_to(next_path):
            await journey.report_stage("second_factor")
        response = see_other("/login/code" + _next_query(next_path))
        set_cookie(response, VISIT_COOKIE, await sessions.start_challenge(user))
        return response

    async def show_code(user: User, next_path: str | None, status: int = 200, **context: Any) -> Response:
        journey = await journey_to(next_path)
        return await page(
            "second_factor.html",
            status=status,
            page_title=_("Second step"),
            site=journey.title if journey else "",
            **(journey.details(client_address()) if journey else {}),
            form_targets=journey.form_targets if journey else (),
            csrf=csrf_token(read_cookie(VISIT_COOKIE)),
            action="/login/code",
            resend_action="/login/code/resend",
            next=safe_next(next_path) if next_path else "",
            second_factors=user.second_factors,
            email_hint=mask_email(user.login),
            **context,
        )

    async def enter(signed_in: SignedIn, journey: LoginFlow | None, next_path: str | None) -> Response:
        """A new session with a new name; whatever the browser came with is worth nothing any more."""
        session = await sessions.start(
            signed_in.user,
            signed_in.auth,
            client_address(),
            browser_label(),
            session=read_cookie(SESSION_COOKIE),
            visit=read_cookie(VISIT_COOKIE),
        )
        response = see_other(await journey.complete(session) if journey else safe_next(next_path))
        set_cookie(response, SESSION_COOKIE, session.secret, life_s)
        remember_browser(response, devices, signed_in.user)
        delete_cookie(response, VISIT_COOKIE)
        return response

    return routes


def _next_query(next_path: str | None) -> str:
    return f"?next={quote(safe_next(next_path))}" if next_path else ""


def mask_email(login: str) -> str:
    name, _, domain = login.rpartition("@")
    return f"{name[:1]}…@{domain}"
