"""The pages of links in mails about the address: verify it, confirm a new one, undo a change.

Opening a link changes nothing, because mail programs open links too. The form on its page does.
"""

from typing import Any

from quart import Blueprint, Response, request

from sso.accounts.email_address.change import CHANGE, UNDO, AddressTaken, EmailChange
from sso.accounts.email_address.verification import EmailVerification
from sso.core.language import Text
from sso.web.cookies import RESET_COOKIE, VISIT_COOKIE, is_secret, read_cookie, set_cookie, visit_secret
from sso.web.csrf import check_csrf, csrf_token
from sso.web.language import _
from sso.web.pages import form_fields, page
from sso.web.redirects import see_other

LINK_INVALID = _("This link no longer works. It may have been used already, or it has expired.")
TAKEN = _("This e-mail address belongs to another account by now. Nothing was changed.")


def email_link_pages(verification: EmailVerification, change: EmailChange) -> Blueprint:
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
        if (found := await change.find(CHANGE, token)) is None:
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
        if (found := await change.find(UNDO, token)) is None:
            return await show_invalid_link()
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
            button=_("Yes, undo the change"),
        )

    @routes.post("/undo")
    async def undo() -> Response:
        try:
            reset_secret = await change.undo(await posted_token())
        except AddressTaken:
            return await show_invalid_link(TAKEN, 409)
        if reset_secret is None:
            return await show_invalid_link()
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


def _token(value: object) -> str:
    return value if isinstance(value, str) and is_secret(value) else ""
