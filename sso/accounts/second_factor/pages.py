"""Forms of the account page that set up and remove second factors.

A change needs recent authentication. The setup of an authenticator app asks for it on a page of its own, before the key
is shown.
"""

import orjson
from quart import Blueprint, Response, request

from sso.accounts.account_page.session_restart import SessionRestart
from sso.accounts.account_page.view import AccountView, NotSignedIn
from sso.accounts.authentication_context import AuthenticationContext, continued
from sso.accounts.form_problem import FormProblem
from sso.accounts.login.messages import mail_code
from sso.accounts.login.view import LoginCompletion, next_query
from sso.accounts.model import SignedIn
from sso.accounts.passkeys.authentication import PasskeyAuthentication
from sso.accounts.second_factor.changes import FactorChange, SecondFactorChanges
from sso.accounts.second_factor.codes import SecondFactors
from sso.accounts.second_factor.qr_codes import QrCodes
from sso.accounts.second_factor.recovery_code_pages import keep_codes, recovery_codes_path, show_codes_next
from sso.accounts.second_factor.recovery_codes import normalized_code
from sso.accounts.second_factor.shown_codes import ShownCodes
from sso.accounts.session_store import Session
from sso.core.encryption import EncryptionError, Keyring
from sso.db.clock import DatabaseClock
from sso.web.cookies import SESSION_COOKIE, delete_cookie
from sso.web.csrf import csrf_token
from sso.web.language import _
from sso.web.pages import page
from sso.web.redirects import safe_next, see_other
from sso.web.request import client_address

SETUP_S = 600
# Forms of the account page that need a code. The form that removes a passkey has its id.
FORMS = ("totp", "email_2fa", "recovery", "email", "notices", "passkeys", "identities", "export", "delete")


class SetupExpired(Exception):
    """The enrolment was started more than SETUP_S seconds ago."""


class TotpEnrolments:
    """Keeps an enrolment (secret and start time) in an encrypted form field.

    It is bound to the browser session and to the user's ``valid_from``. Enrolling changes both, so it works once.
    """

    def __init__(self, keyring: Keyring, clock: DatabaseClock) -> None:
        self._keyring = keyring
        self._clock = clock

    def encrypt(self, session: Session, secret: str) -> str:
        return self._keyring.encrypt(_purpose(session), orjson.dumps([int(self._clock.now()), secret]).decode())

    def decrypt(self, session: Session, setup: str) -> str:
        """Returns the secret. Raises EncryptionError or ValueError if the field is invalid, and SetupExpired."""
        started, secret = orjson.loads(self._keyring.decrypt(_purpose(session), setup))
        if self._clock.now() - started > SETUP_S:
            raise SetupExpired
        return str(secret)


def second_factor_pages(
    account: AccountView,
    restarts: SessionRestart,
    factors: SecondFactors,
    changes: SecondFactorChanges,
    enrolments: TotpEnrolments,
    qr_codes: QrCodes,
    shown: ShownCodes,
    completion: LoginCompletion,
    passkeys: PasskeyAuthentication,
) -> Blueprint:
    routes = Blueprint("factors", __name__, url_prefix="/account")

    @routes.errorhandler(NotSignedIn)
    async def redirect_to_login(_: NotSignedIn) -> Response:
        return see_other("/login?next=/account")

    async def ask_to_confirm(
        session: Session, problem: FormProblem | None = None, notice: str | None = None
    ) -> Response:
        return await page(
            "totp_confirm.html",
            status=problem.status if problem else 200,
            headers=problem.headers if problem else None,
            problem=problem.text if problem else None,
            notice=notice,
            page_title=_("Set up an authenticator app"),
            user=session.user,
            second_factors=session.user.second_factors,
            passkey_confirmation=await passkeys.confirm_options(session),
            enrolling=session.must_enrol,
            next_query=next_query(request.args.get("next")),
            csrf=csrf_token(session.secret),
        )

    async def show_setup(session: Session, setup: str, problem: FormProblem | None = None) -> Response:
        secret = enrolments.decrypt(session, setup)
        uri = factors.totp_uri(session.user, secret)
        return await page(
            "totp_setup.html",
            status=problem.status if problem else 200,
            headers=problem.headers if problem else None,
            problem=problem.text if problem else None,
            page_title=_("Set up an authenticator app"),
            user=session.user,
            enrolling=session.must_enrol,
            next_query=next_query(request.args.get("next")),
            csrf=csrf_token(session.secret),
            totp_uri=uri,
            qr_svg=await qr_codes.svg(session.user.user_id, client_address(), uri),
            secret=" ".join(secret[start : start + 4] for start in range(0, len(secret), 4)),
            setup=setup,
        )

    async def begin_setup(session: Session, problem: FormProblem | None = None) -> Response:
        return await show_setup(session, enrolments.encrypt(session, factors.new_totp_secret()), problem)

    @routes.get("/enrol")
    async def enrolment() -> Response:
        """Shows the second factors to choose from, to a user who must have one."""
        session = await account.session(may_enrol=True)
        return await account.show(session) if session.must_enrol else see_other(safe_next(request.args.get("next")))

    @routes.get("/totp")
    async def setup_form() -> Response:
        session = await account.session(may_enrol=True)
        return await begin_setup(session) if account.is_recent(session) else await ask_to_confirm(session)

    @routes.post("/totp/confirm")
    async def confirm_setup() -> Response:
        session, form = await account.submitted_form(may_enrol=True)
        problem = await account.confirm(session, form)
        if problem:
            return await ask_to_confirm(session, problem)
        return see_other("/account/totp" + next_query(request.args.get("next")))

    @routes.post("/totp")
    async def enrol() -> Response:
        session, form = await account.submitted_form(may_enrol=True)
        setup = form.get("setup", "")
        try:
            secret = enrolments.decrypt(session, setup)
        except SetupExpired:
            return await begin_setup(
                session, FormProblem(_("The key has expired. Please add the new key to your app."))
            )
        except (EncryptionError, ValueError):
            return see_other("/account/totp" + next_query(request.args.get("next")))
        step = factors.matching_totp_step(secret, normalized_code(form.get("otp", "")))
        if step is None:
            problem = FormProblem(_("This code is incorrect. Is the clock on your phone right?"))
            return await show_setup(session, setup, problem)
        authentication = continued(session)  # the user was authenticated when the setup began
        if session.must_enrol:  # the code is a part of the sign-in, which asked for it
            authentication = authentication.with_code("totp")
        change = await changes.set_totp(session.user, factors.encrypt_totp(session.user.user_id, secret), step)
        return await finish(session, change, authentication, "totp")

    @routes.post("/totp/code")
    async def send_code_to_confirm_setup() -> Response:
        session, _form = await account.submitted_form(may_enrol=True)
        outcome = await mail_code(factors, session.user)
        if isinstance(outcome, FormProblem):
            return await ask_to_confirm(session, outcome)
        return await ask_to_confirm(session, notice=outcome)

    @routes.post("/code")
    async def send_code_for_change() -> Response:
        session, form = await account.submitted_form()
        outcome = await mail_code(factors, session.user)
        opened, item = form.get("form", ""), form.get("id") or form.get("provider", "")
        opened = opened if opened in FORMS or opened == item else ""
        if isinstance(outcome, FormProblem):
            return await account.show(session, outcome, opened, opened_item=item)
        return await account.show(session, opened=opened, opened_item=item, notice=outcome)

    @routes.post("/totp/remove")
    async def remove_totp() -> Response:
        session, form = await account.submitted_form()
        authentication = await account.authenticate(session, form)
        if isinstance(authentication, FormProblem):
            return await account.show(session, authentication, "totp")
        change = await changes.set_totp(session.user, None) if session.user.totp_sealed else None
        return await finish(session, change, authentication, "totp-removed")

    @routes.post("/email-2fa")
    async def set_email_codes() -> Response:
        session, form = await account.submitted_form(may_enrol=True)
        authentication = await account.authenticate(session, form)
        if isinstance(authentication, FormProblem):
            return await account.show(session, authentication, "email_2fa")
        change = await changes.set_email(session.user, form.get("enable") == "1")
        return await finish(session, change, authentication, "email-2fa")

    async def finish(
        session: Session, change: FactorChange | None, authentication: AuthenticationContext, done: str
    ) -> Response:
        """Restarts the session after a change, and shows the recovery codes if the change has made some.

        A factor that was turned on proves nothing: it counts from the next sign-in.
        """
        if change is None:
            return see_other("/account")
        signed_in = SignedIn(change.user, authentication)
        if session.must_enrol and await completion.must_prove_second_factor(signed_in):
            return await ask_for_first_code(signed_in, change.recovery_codes)
        response = await restarts.restart(session, change.user, authentication, done)
        codes = change.recovery_codes
        next_path = request.args.get("next") or "/account" if session.must_enrol else ""
        return show_codes_next(response, shown, change.user, codes, next_path) if codes else response

    async def ask_for_first_code(signed_in: SignedIn, codes: tuple[str, ...]) -> Response:
        """Asks for the code that the sign-in needs, after codes by e-mail were turned on. Then the codes are shown."""
        next_path = request.args.get("next") or "/account"
        if codes:
            next_path = recovery_codes_path(next_path)
        response = await completion.ask_for_second_factor(signed_in, next_path)
        if codes:
            keep_codes(response, shown, signed_in.user, codes)
        delete_cookie(response, SESSION_COOKIE)
        return response

    return routes


def _purpose(session: Session) -> str:
    return f"totp setup:{session.user.user_id}:{session.user.valid_from}:{session.id}"
