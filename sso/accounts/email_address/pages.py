"""Forms of the account page for the e-mail address and the mails to it."""

from quart import Blueprint, Response

from sso.accounts.account_page.notices import account_url
from sso.accounts.account_page.view import AccountView, NotSignedIn
from sso.accounts.email_address.change import EmailChange
from sso.accounts.email_address.section import CANNOT_BE_ENDED
from sso.accounts.email_address.undo import EmailUndo
from sso.accounts.email_address.verification import EmailVerification
from sso.accounts.form_problem import FormProblem
from sso.accounts.login.messages import NOT_AN_ADDRESS, next_mail_problem
from sso.accounts.model import login_key
from sso.accounts.sign_in_notices import SignInNotices
from sso.core.language import current_language
from sso.web.language import _
from sso.web.redirects import see_other

NO_EARLIER_FACTOR = FormProblem(CANNOT_BE_ENDED)
SAME_ADDRESS = FormProblem(_("This is already your e-mail address."), field="new_email")


def email_pages(
    account: AccountView,
    verification: EmailVerification,
    change: EmailChange,
    undo: EmailUndo,
    notices: SignInNotices,
) -> Blueprint:
    routes = Blueprint("email_address", __name__, url_prefix="/account")

    @routes.errorhandler(NotSignedIn)
    async def redirect_to_login(_: NotSignedIn) -> Response:
        return see_other("/login?next=/account")

    @routes.post("/email/verify")
    async def send_verification() -> Response:
        session, _form = await account.submitted_form()
        if session.user.email_verified:
            return see_other("/account#email")
        if not await verification.send(session.user, current_language.get()):
            problem = next_mail_problem(await verification.wait_s(session.user) or 1)
            return await account.show(session, problem, "email")
        return see_other(account_url("verification-sent"))

    @routes.post("/email")
    async def request_change() -> Response:
        session, form = await account.submitted_form()
        login = form.get("new_email", "").strip()
        if login_key(login) == session.user.login_key:
            return await account.show(session, SAME_ADDRESS, "email", new_email=login)
        if problem := await account.confirm(session, form):
            return await account.show(session, problem, "email", new_email=login)
        try:
            wait_s = await change.request(session.user, login, current_language.get())
        except ValueError:
            return await account.show(session, FormProblem(NOT_AN_ADDRESS, field="new_email"), "email", new_email=login)
        if wait_s is None:
            return see_other("/account")
        if wait_s:
            return await account.show(session, next_mail_problem(wait_s, "new_email"), "email", new_email=login)
        return see_other(account_url("email-requested"))

    @routes.post("/email/cancel")
    async def cancel_change() -> Response:
        session, _form = await account.submitted_form()
        await change.cancel(session.user)
        return see_other(account_url("email-cancelled"))

    @routes.post("/email/undo")
    async def end_undo_links() -> Response:
        """Only a second factor from before the change distinguishes the owner from a thief.

        The thief may have the password and the session, and may have added other factors.
        """
        session, form = await account.submitted_form()
        earlier = await undo.factors_to_end_links(session.user)
        if earlier is None:
            return await account.show(session, NO_EARLIER_FACTOR, "undo")
        if problem := await account.prove_earlier_factor(session, form, earlier):
            return await account.show(session, problem, "undo")
        await undo.end_links(session.user)
        return see_other(account_url("email-undo-ended"))

    @routes.post("/email/notices")
    async def set_notices() -> Response:
        """Turning notices off hides a thief, so it is confirmed like other important changes."""
        session, form = await account.submitted_form()
        on = form.get("enable") == "1"
        if not on and (problem := await account.confirm(session, form)):
            return await account.show(session, problem, "notices")
        await notices.turn(session.user, on=on)
        return see_other(account_url("sign-in-notices"))

    return routes
