"""The page on which a signed-in user decides about a game's sign-in. Opening it never does anything."""

from quart import Blueprint, Response, request

from sso.accounts.sessions import Session
from sso.accounts.visitor import Visitor
from sso.gsid.confirm import Confirmation, ConfirmationView
from sso.gsid.link import Link
from sso.gsid.login_flow import decision_path, front_path
from sso.web import cookies_csrf, language
from sso.web.http import address
from sso.web.language import _
from sso.web.pages import form_fields, page, see_other

PATH = "/game/<gsid>"
LOOK_AGAIN_S = "2"
TITLES = {
    "done": _("Back to your game"),
    "waiting": _("Back to your game"),
    "gone": _("Back to your game"),
    "used": _("Used already"),
    "stopped": _("Stopped"),
}


def game_pages(confirm: Confirmation, visitor: Visitor) -> Blueprint:
    routes = Blueprint("game_pages", __name__)

    @routes.get(PATH)
    async def decide(gsid: str) -> Response:
        session = await visitor.session()
        link = Link.from_query(request.query_string.decode("latin-1"))
        if session is None:
            return see_other(front_path(gsid, link.unchecked))
        view = await confirm.view(gsid, link)
        language.asked_for(link.lang)
        if not view.pending:
            return await show_result(view, session)
        allowed = await confirm.is_allowed(gsid, session.user, link)
        return await page(
            "game.html",
            page_title=_("Continue to your game"),
            user=session.user,
            csrf=cookies_csrf.csrf_token(session.secret),
            game=view,
            same_place=view.same_place(address()),
            allowed=allowed,
            administrator=allowed and await confirm.hands_over_rights(session.user, address()),
            action=decision_path(gsid),
            next=front_path(gsid, view.parameters),
        )

    @routes.post(f"{PATH}/continue")
    async def go_on(gsid: str) -> Response:
        session, link = await asked_by_form()
        if session:
            await confirm.confirm(gsid, session.user, link)
        return see_other(decision_path(gsid, link.unchecked))

    @routes.post(f"{PATH}/deny")
    async def deny(gsid: str) -> Response:
        session, link = await asked_by_form()
        if session is None:
            return see_other(decision_path(gsid, link.unchecked))
        view = await confirm.view(gsid, link)
        if not await confirm.deny(gsid):
            return see_other(decision_path(gsid, link.unchecked))
        return await show_outcome("stopped", view, session)

    async def asked_by_form() -> tuple[Session | None, Link]:
        """Who pressed the button, and the parameters that the page with the button had shown."""
        form = await form_fields()
        session = await visitor.session()
        if session:
            cookies_csrf.check_csrf(session.secret, form.get("csrf"))
        link = Link.from_form(form)
        language.asked_for(link.lang)
        return session, link

    async def show_result(view: ConfirmationView, session: Session) -> Response:
        if view.confirmed_by != session.user.user_id:
            return await show_outcome("used", view, session)
        if view.delivered:
            return await show_outcome("done", view, session)
        return await show_outcome("waiting" if view.waiting else "gone", view, session)

    async def show_outcome(outcome: str, view: ConfirmationView, session: Session) -> Response:
        signed_in = outcome in ("done", "waiting", "gone")
        return await page(
            "game_result.html",
            page_title=TITLES[outcome],
            user=session.user,
            csrf=cookies_csrf.csrf_token(session.secret),
            headers={"Refresh": LOOK_AGAIN_S} if outcome == "waiting" else None,
            game=view,
            outcome=outcome,
            administrator=signed_in and await confirm.hands_over_rights(session.user, address()),
        )

    return routes
