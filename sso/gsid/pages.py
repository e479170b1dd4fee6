"""The page where a signed-in user confirms or denies a game login. Opening it changes nothing."""

from quart import Blueprint, Response, request

from sso.accounts.model import User
from sso.accounts.session_store import Session
from sso.accounts.visitor import Visitor
from sso.gsid.confirm import Confirmation, ConfirmationView
from sso.gsid.guest_merges import GuestRefused
from sso.gsid.login_flow import decision_path, session_path
from sso.gsid.login_link import LoginLink
from sso.web import language
from sso.web.cookies import VISIT_COOKIE, read_cookie, set_cookie, visit_secret
from sso.web.csrf import check_csrf, csrf_token, is_own_form
from sso.web.language import _
from sso.web.pages import form_fields, page
from sso.web.redirects import see_other
from sso.web.request import client_address

PATH = "/game/<gsid>"
REFRESH_S = "2"
DEVICE_TITLE = _("Back to your device")
TITLES = {
    "done": _("Back to your game"),
    "waiting": _("Back to your game"),
    "not_responding": _("Back to your game"),
    "used": _("Already used"),
    "stopped": _("Sign-in stopped"),
}


def game_pages(confirmation: Confirmation, visitor: Visitor) -> Blueprint:
    routes = Blueprint("game_pages", __name__)

    @routes.get(PATH)
    async def decide(gsid: str) -> Response:
        session = await visitor.session()
        link = LoginLink.from_query(request.query_string.decode("latin-1"))
        if session is None:
            return see_other(session_path(gsid, link.unchecked))
        view = await confirmation.view(gsid, link)
        language.use_ui_locales(link.lang)
        if not view.pending:
            return await show_result(view, session)
        allowed = await confirmation.is_allowed(gsid, session.user, link)
        preview = await confirmation.guest_preview(view, session.user) if allowed else None
        guest_refused = isinstance(preview, GuestRefused)
        if isinstance(preview, GuestRefused):
            allowed, preview = False, None
        titles = [await confirmation.application_title(number) for number in preview.application_ids] if preview else []
        return await page(
            "game.html",
            page_title=_("Connect a device") if view.site else _("Continue to your game"),
            user=session.user,
            site_brand=view.site.brand if view.site else None,
            site=view.title,
            csrf=csrf_token(session.secret),
            game=view,
            same_network=view.same_network(client_address()),
            allowed=allowed,
            guest_refused=guest_refused,
            preview=preview,
            preview_games=[title for title in titles if title],
            administrator=allowed and await gets_admin_rights(view, session.user),
            action=decision_path(gsid),
            next=session_path(gsid, view.parameters),
        )

    @routes.post(f"{PATH}/continue")
    async def continue_as_user(gsid: str) -> Response:
        session, link, _form = await read_decision()
        if session:
            await confirmation.confirm(gsid, session, link)
        return see_other(decision_path(gsid, link.unchecked))

    @routes.get(f"{PATH}/deny")
    async def ask_to_deny(gsid: str) -> Response:
        """Asks whether to stop the sign-in, for people who have not signed in and should not."""
        link = LoginLink.from_query(request.query_string.decode("latin-1"))
        view = await confirmation.view(gsid, link)
        language.use_ui_locales(link.lang)
        if not view.pending:
            return see_other(session_path(gsid, link.unchecked))
        session = await visitor.session()
        secret, is_new = (session.secret, False) if session else visit_secret()
        response = await page(
            "game_deny.html",
            page_title=_("This was not me"),
            user=session.user if session else None,
            csrf=csrf_token(secret),
            game=view,
            action=decision_path(gsid),
            next=session_path(gsid, view.parameters),
        )
        if is_new:
            set_cookie(response, VISIT_COOKIE, secret)
        return response

    @routes.post(f"{PATH}/deny")
    async def deny(gsid: str) -> Response:
        session, link, form = await read_decision()
        if session is None and not is_own_form(read_cookie(VISIT_COOKIE), form.get("csrf")):
            return see_other(decision_path(gsid, link.unchecked))
        view = await confirmation.view(gsid, link)
        if not await confirmation.deny(gsid):
            return see_other(decision_path(gsid, link.unchecked))
        return await show_outcome("stopped", view, session)

    async def read_decision() -> tuple[Session | None, LoginLink, dict[str, str]]:
        """Returns the session of the user who pressed the button, the parameters of the link, and the form."""
        form = await form_fields()
        session = await visitor.session()
        if session:
            check_csrf(session.secret, form.get("csrf"))
        link = LoginLink.from_form(form)
        language.use_ui_locales(link.lang)
        return session, link, form

    async def show_result(view: ConfirmationView, session: Session) -> Response:
        if view.confirmed_by != session.user.user_id:
            return await show_outcome("used", view, session)
        if view.delivered:
            return await show_outcome("done", view, session)
        return await show_outcome("waiting" if view.waiting else "not_responding", view, session)

    async def show_outcome(outcome: str, view: ConfirmationView, session: Session | None) -> Response:
        user = session.user if session else None
        signed_in = outcome in ("done", "waiting", "not_responding")
        return await page(
            "game_result.html",
            page_title=DEVICE_TITLE if signed_in and view.site else TITLES[outcome],
            user=user,
            csrf=csrf_token(session.secret) if session else "",
            headers={"Refresh": REFRESH_S} if outcome == "waiting" else None,
            game=view,
            outcome=outcome,
            administrator=user is not None and signed_in and await gets_admin_rights(view, user),
        )

    async def gets_admin_rights(view: ConfirmationView, user: User) -> bool:
        """A device of another party gets none: its tokens have the scopes that the page shows."""
        is_own = view.site is None or view.site.first_party
        return is_own and await confirmation.grants_admin_rights(user, client_address())

    return routes
