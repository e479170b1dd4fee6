"""Forms of the account page for password, sessions, games and sites; ``second_factor_pages`` has the others.

Changes that a person with a borrowed browser must not make ask for the password.
"""

from quart import Blueprint, Response, request

from sso.accounts.account_page.notices import NOTICES, account_url
from sso.accounts.account_page.session_restart import SessionRestart
from sso.accounts.account_page.view import AccountView, NotSignedIn
from sso.accounts.authentication_context import after_password
from sso.accounts.form_problem import FormProblem
from sso.accounts.password_changes import PasswordChanges
from sso.accounts.ports import ConnectedSiteStore
from sso.accounts.session_store import SessionStore
from sso.accounts.signed_in_game_store import SignedInGames
from sso.accounts.user_store import UserStore
from sso.web.redirects import see_other


def account_pages(
    account: AccountView,
    restarts: SessionRestart,
    users: UserStore,
    password_changes: PasswordChanges,
    sessions: SessionStore,
    games: SignedInGames,
    sites: ConnectedSiteStore,
) -> Blueprint:
    routes = Blueprint("account", __name__, url_prefix="/account")

    @routes.errorhandler(NotSignedIn)
    async def redirect_to_login(_: NotSignedIn) -> Response:
        return see_other("/login?next=/account")

    @routes.get("")
    async def show() -> Response:
        return await account.show(await account.session(), done=NOTICES.get(request.args.get("done", "")))

    @routes.post("/password")
    async def change_password() -> Response:
        session, form = await account.submitted_form()
        password_hash = await account.new_password_hash(session, form)
        if isinstance(password_hash, FormProblem):
            return await account.show(session, password_hash, "password")
        user = await password_changes.change(session.user, password_hash)
        if user is None:
            return see_other("/account")
        authentication = after_password(session, has_factor=bool(session.user.second_factors))
        return await restarts.restart(session, user, authentication, "password")

    @routes.post("/sessions/end")
    async def end_session() -> Response:
        session, form = await account.submitted_form()
        await sessions.end(session.user.user_id, form.get("id", ""))
        return see_other(account_url("ended"))

    @routes.post("/sessions/end-others")
    async def end_other_sessions() -> Response:
        session, _ = await account.submitted_form()
        await users.revoke_all_except(session.user.user_id, session.id)
        return restarts.keep(await account.session(), "ended-others")

    @routes.post("/games/end")
    async def end_game() -> Response:
        session, form = await account.submitted_form()
        await games.end(session.user.user_id, form.get("ids", "").split())
        return see_other(account_url("game-ended"))

    @routes.post("/sites/remove")
    async def remove_site() -> Response:
        session, form = await account.submitted_form()
        await sites.remove(session.user.user_id, form.get("client_id", ""))
        return see_other(account_url("site-removed"))

    return routes
