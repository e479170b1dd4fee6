"""Forms of the account page that add, rename and remove passkeys."""

from quart import Blueprint, Response, request

from sso.accounts.account_page.notices import account_url
from sso.accounts.account_page.session_restart import SessionRestart
from sso.accounts.account_page.view import AccountView, NotSignedIn
from sso.accounts.errors import LastWayToSignIn
from sso.accounts.form_problem import FormProblem
from sso.accounts.login.messages import LAST_WAY, retry_problem
from sso.accounts.passkeys.changes import MAX_PASSKEYS, PasskeyChanges
from sso.accounts.passkeys.credential import InvalidPasskey
from sso.accounts.passkeys.registration import PasskeyRegistration
from sso.accounts.passkeys.store import PasskeyStore
from sso.accounts.second_factor.recovery_code_pages import show_codes_next
from sso.accounts.second_factor.shown_codes import ShownCodes
from sso.accounts.visitor import browser_label
from sso.core.errors import RetryLater
from sso.core.language import plural
from sso.web.language import _
from sso.web.redirects import see_other
from sso.web.request import client_address

MAX_NAME = 64
FORM = "passkeys"  # the name of the forms on the account page

NOT_ADDED = FormProblem(_("The passkey could not be added. Please try again."))
NAME_MISSING = FormProblem(_("Please enter a name for the passkey."))
NAME_TOO_LONG = FormProblem(_("The name of a passkey must have at most %(count)s characters.", count=MAX_NAME))
FULL = FormProblem(
    plural(
        "You have %(count)s passkey, which is the maximum. Remove one before you add another.",
        "You have %(count)s passkeys, which is the maximum. Remove one before you add another.",
        MAX_PASSKEYS,
    )
)


def passkey_pages(
    account: AccountView,
    restarts: SessionRestart,
    store: PasskeyStore,
    registration: PasskeyRegistration,
    changes: PasskeyChanges,
    shown: ShownCodes,
) -> Blueprint:
    routes = Blueprint("passkeys", __name__, url_prefix="/account/passkeys")

    @routes.errorhandler(NotSignedIn)
    async def redirect_to_login(_: NotSignedIn) -> Response:
        return see_other("/login?next=/account")

    @routes.post("")
    async def add() -> Response:
        session, form = await account.submitted_form(may_enrol=True)
        name = form.get("name", "").strip() or browser_label()
        if len(name) > MAX_NAME:
            return await account.show(session, NAME_TOO_LONG, FORM)
        if session.user.passkey_count >= MAX_PASSKEYS:
            return await account.show(session, FULL, FORM)
        credential = form.pop("credential", "")  # the new passkey, which confirms nothing
        authentication = await account.authenticate(session, form)
        if isinstance(authentication, FormProblem):
            return await account.show(session, authentication, FORM)
        try:
            change = await registration.register(session, credential, name, client_address())
        except InvalidPasskey:
            return await account.show(session, NOT_ADDED, FORM)
        except RetryLater as error:
            return await account.show(session, retry_problem(error), FORM)
        if change.user.valid_from == session.user.valid_from:
            return see_other(account_url("passkey-another"))
        if session.must_enrol:  # the passkey is a part of the sign-in, which asked for it
            authentication = authentication.with_passkey()
        response = await restarts.restart(session, change.user, authentication, "passkey")
        codes = change.recovery_codes
        next_path = request.args.get("next") or "/account" if session.must_enrol else ""
        return show_codes_next(response, shown, change.user, codes, next_path) if codes else response

    @routes.post("/rename")
    async def rename() -> Response:
        session, form = await account.submitted_form()
        name = form.get("name", "").strip()
        if not name or len(name) > MAX_NAME:
            return await account.show(session, NAME_TOO_LONG if name else NAME_MISSING, form.get("id", ""))
        await store.rename(session.user.user_id, form.get("id", ""), name)
        return see_other(account_url("passkey-renamed"))

    @routes.post("/remove")
    async def remove() -> Response:
        session, form = await account.submitted_form()
        authentication = await account.authenticate(session, form)
        if isinstance(authentication, FormProblem):
            return await account.show(session, authentication, form.get("id", ""))
        try:
            change = await changes.remove(session.user, form.get("id", ""))
        except LastWayToSignIn:
            return await account.show(session, FormProblem(LAST_WAY, 409), form.get("id", ""))
        if change is None:
            return see_other("/account")
        return await restarts.restart(session, change.user, authentication, "passkey-removed")

    return routes
