"""The pages of links in mails about the address: verify it, confirm a new one, undo a change.

Opening a link changes nothing, because mail programs open links too. The form on its page does.
"""

from typing import Any

from quart import Blueprint, Response, request

from sso.accounts.email_address.change import EmailChange
from sso.accounts.email_address.new_login import AddressTaken
from sso.accounts.email_address.undo import EmailUndo, UndoWaits, UserIsMerged, undo_time
from sso.accounts.email_address.verification import EmailVerification
from sso.accounts.history.texts import format_day, format_time
from sso.accounts.model import User
from sso.core.language import Text
from sso.db.clock import DatabaseClock
from sso.web.cookies import RESET_COOKIE, VISIT_COOKIE, is_secret, read_cookie, set_cookie, visit_secret
from sso.web.csrf import check_csrf, csrf_token
from sso.web.language import _
from sso.web.pages import form_fields, page
from sso.web.redirects import see_other

LINK_INVALID = _("This link no longer works. It may have been used already, or it has expired.")
TAKEN = _("This e-mail address belongs to another account by now. Nothing was changed.")

MERGED = _("This account was merged into another one, so nothing was changed.")
MERGED_ADVICE = _("If this was not you, ask support soon to separate the accounts, and then open this link again.")


def email_link_pages(
    verification: EmailVerification, change: EmailChange, undo: EmailUndo, clock: DatabaseClock
) -> Blueprint:
    routes = Blueprint("email_links", __name__, url_prefix="/email")

    @routes.get("/verify")
    async def verification_page() -> Response:
        token = _token(request.args.get("token"))
        if (user := await verification.find(token)) is None:
            return await show_invalid_link()
        return await show_question(
            "/email/verify",
            token,
            heading=_("Verify your e-mail address"),
            message=_("Does %(address)s belong to your account here?", address=user.login),
            note=whose_account(user),
            button=_("Yes, verify this address"),
        )

    @routes.post("/verify")
    async def verify() -> Response:
        if not await verification.confirm(await posted_token()):
            return await show_invalid_link()
        return await show_done(_("Your e-mail address is verified"), _("Thank you. There is nothing else to do."))

    @routes.get("/change")
    async def change_page() -> Response:
        token = _token(request.args.get("token"))
        if (found := await change.find(token)) is None:
            return await show_invalid_link()
        return await show_question(
            "/email/change",
            token,
            heading=_("Use this address?"),
            message=_(
                "The account %(old)s will have the address %(new)s. Sign in with it from then on.",
                old=found.user.nick or found.user.login,
                new=found.login,
            ),
            note=whose_account(found.user),
            button=_("Yes, change the address"),
        )

    @routes.post("/change")
    async def confirm_change() -> Response:
        try:
            user = await change.confirm(await posted_token())
        except AddressTaken:
            return await show_invalid_link(TAKEN, 409)
        if user is None:
            return await show_invalid_link()
        text = _("From now on, sign in with %(address)s. Your password stays the same.", address=user.login)
        return await show_done(_("Your e-mail address has been changed"), text)

    @routes.get("/undo")
    async def undo_page() -> Response:
        token = _token(request.args.get("token"))
        if (found := await undo.find(token)) is None:
            return await show_invalid_link()
        if found.user.merged_into is not None:
            return await show_merged()
        until = undo_time(found.link.data)
        must_wait = await undo.must_wait(found)
        if must_wait and until and until > clock.utc():
            return await show_waiting_undo(UndoWaits(until))
        return await show_question(
            "/email/undo",
            token,
            heading=_("Undo the change of your address?"),
            message=_(
                "Your account gets the address %(address)s back. Everyone is signed out, and you choose a new "
                "password. Passkeys, authenticator apps, recovery codes and linked accounts that were added since the "
                "day before the change are removed.",
                address=found.login,
            ),
            note=_("Two-step sign-in is on, so the change is undone when you open this link again after a day.")
            if must_wait and until is None
            else None,
            button=_("Yes, undo the change"),
        )

    @routes.post("/undo")
    async def undo_change() -> Response:
        try:
            reset_secret = await undo.undo(await posted_token())
        except AddressTaken:
            return await show_invalid_link(TAKEN, 409)
        except UserIsMerged:
            return await show_merged()
        if reset_secret is None:
            return await show_invalid_link()
        if isinstance(reset_secret, UndoWaits):
            return await show_waiting_undo(reset_secret)
        response = see_other("/reset")
        set_cookie(response, RESET_COOKIE, reset_secret)
        return response

    async def posted_token() -> str:
        form = await form_fields()
        check_csrf(read_cookie(VISIT_COOKIE), form.get("csrf"))
        return _token(form.get("token"))

    async def show_question(action: str, token: str, **context: Any) -> Response:
        secret, is_new = visit_secret()
        response = await page(
            "email_link.html",
            page_title=context["heading"],
            action=action,
            token=token,
            csrf=csrf_token(secret),
            **context,
        )
        if is_new:
            set_cookie(response, VISIT_COOKIE, secret)
        return response

    async def show_waiting_undo(waits: UndoWaits) -> Response:
        heading = _("The change is not undone yet")
        message = _(
            "Open this link again after %(time)s. Until then, the owner of the account can make it invalid on the "
            "account page. Both e-mail addresses have got a notice.",
            time=format_time(waits.until),
        )
        return await page("message.html", page_title=heading, heading=heading, message=message)

    async def show_merged() -> Response:
        heading = _("The change is not undone yet")
        return await page(
            "message.html", status=409, page_title=heading, heading=heading, problem=MERGED, message=MERGED_ADVICE
        )

    async def show_done(heading: Text, message: Text) -> Response:
        return await page(
            "message.html",
            page_title=heading,
            heading=heading,
            message=message,
            link="/account",
            link_text=_("Continue to your account"),
        )

    async def show_invalid_link(problem: Text = LINK_INVALID, status: int = 410) -> Response:
        return await page(
            "message.html",
            status=status,
            page_title=_("Link expired"),
            heading=_("E-mail address"),
            problem=problem,
            message=_("You can see your address, and change it, on your account page."),
            link="/account",
            link_text=_("Continue to your account"),
        )

    return routes


def whose_account(user: User) -> Text:
    """Someone else may have used the address of the person who reads the mail."""
    return _(
        "The account has the nickname %(nick)s and was created on %(date)s. If you did not create it, close this page.",
        nick=user.nick or user.login,
        date=format_day(user.reg_time),
    )


def _token(value: object) -> str:
    return value if isinstance(value, str) and is_secret(value) else ""
