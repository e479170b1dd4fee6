"""The page about a store account that belongs to another account: the owner of both moves the link, or merges.

Both proofs come from this browser, or from the game and this browser. Who wants the store account was signed in when
its provider answered, or is the guest of the game's session; the account that has it needs a recent login.
"""

from typing import Any

from quart import Blueprint, Response, request

from sso.accounts.errors import LastWayToSignIn
from sso.accounts.login.messages import LAST_WAY
from sso.accounts.login.view import next_query
from sso.accounts.session_store import Session
from sso.accounts.visitor import Visitor
from sso.audit.trail import AuditActor
from sso.core.errors import ApiError, Conflict
from sso.core.language import Text
from sso.db.transaction import Transaction
from sso.gsid.guest_merges import GuestPreview
from sso.players.conflict_login import ConflictLoginFlows, OpenConflict, conflict_path
from sso.players.guest_linking import preview_merge
from sso.players.merge import Moves, UserMerges, actor_mode
from sso.players.merge_mails import MergeMails
from sso.upstream.link_conflict_store import LinkConflict, masked_login, use_conflict
from sso.upstream.recent_login import CONFLICT_PATH
from sso.web.csrf import check_csrf, csrf_token
from sso.web.language import _
from sso.web.pages import form_fields, page
from sso.web.redirects import see_other
from sso.web.request import client_address

TITLE = _("Linked with another account")
DECIDE_TITLE = _("Both accounts are yours")
CHANGED = _("Something was changed meanwhile, so nothing was moved. Please try again.")
MOVED = _("%(provider)s signs you in as %(account)s from now on.")
MERGED = _("Your accounts are one now. Please sign in as %(account)s.")


def conflict_pages(flows: ConflictLoginFlows, merges: UserMerges, mails: MergeMails, visitor: Visitor) -> Blueprint:
    routes = Blueprint("link_conflicts", __name__)

    @routes.get(CONFLICT_PATH)
    async def show_conflict() -> Response:
        gsid = request.args.get("gsid", "")
        session, found = await visitor.session(), await flows.open(gsid)
        return await show(session, found, gsid) if found else see_other("/account" if session else "/login")

    async def show(session: Session | None, found: OpenConflict, gsid: str, problem: Text | None = None) -> Response:
        conflict = found.conflict
        decides = owns(session, conflict)
        merges_here = decides and found.game is None
        return await page(
            "link_conflict.html",
            status=409 if problem else 200,
            page_title=DECIDE_TITLE if decides else TITLE,
            user=session.user if session else None,
            csrf=csrf_token(session.secret) if session else "",
            problem=problem,
            decides=decides,
            conflict=conflict,
            claimant=name_of(conflict),
            preview=await merge_preview(conflict) if merges_here else None,
            preview_games=[],
            gsid=gsid,
            login_url=f"/login{next_query(conflict_path(gsid))}",
            back=found.game.path if found.game else "/account",
            **(found.game.details(client_address()) if found.game else {}),
        )

    async def merge_preview(conflict: LinkConflict) -> GuestPreview | None:
        """Returns what would move, or None if the accounts cannot be merged."""
        preview = await preview_merge(merges, conflict.owner.user_id, conflict.claimant)
        return preview if isinstance(preview, GuestPreview) else None

    def owns(session: Session | None, conflict: LinkConflict) -> bool:
        is_owner = session is not None and session.user.user_id == conflict.owner.user_id
        return is_owner and session is not None and flows.recent.is_recent(session)

    async def read_decision() -> tuple[Session, OpenConflict, str] | Response:
        """Returns the session of the owner who has decided, or the page to go to."""
        form = await form_fields()
        session, gsid = await visitor.session(), form.get("gsid", "")
        if session is None:
            return see_other(f"/login{next_query(conflict_path(gsid))}")
        check_csrf(session.secret, form.get("csrf"))
        found = await flows.open(gsid)
        if found is None or not owns(session, found.conflict):
            return see_other(conflict_path(gsid))
        return session, found, gsid

    @routes.post(f"{CONFLICT_PATH}/move")
    async def move() -> Response:
        decision = await read_decision()
        if isinstance(decision, Response):
            return decision
        session, found, gsid = decision
        conflict = found.conflict
        try:
            moved = await flows.conflicts.move(conflict, session.user)
        except LastWayToSignIn:
            return await show(session, found, gsid, LAST_WAY)
        if not moved:
            return await show(session, found, gsid, CHANGED)
        text = Text(MOVED, provider=conflict.provider, account=name_of(conflict))
        return await show_done(text, found.game.path if found.game else "/account")

    @routes.post(f"{CONFLICT_PATH}/merge")
    async def merge() -> Response:
        """Merges two accounts, and notifies both owners.

        The guest of a game's session is merged on the page of the session.
        """
        decision = await read_decision()
        if isinstance(decision, Response):
            return decision
        session, found, gsid = decision
        if found.game is not None:
            return see_other(found.game.path)
        conflict = found.conflict

        async def check(tx: Transaction, _moves: Moves) -> None:
            if not await use_conflict(tx, conflict):
                raise Conflict("the question was answered meanwhile")
            await mails.send(tx, conflict.owner, conflict.claimant)

        mode = actor_mode(AuditActor(user_id=session.user.user_id, address=str(client_address())))
        try:
            await merges.merge(mode, conflict.owner.user_id, conflict.claimant.user_id, check, decided_by=session.user)
        except ApiError:
            return await show(session, found, gsid, CHANGED)
        return await show_done(Text(MERGED, account=name_of(conflict)), "/login")

    return routes


def name_of(conflict: LinkConflict) -> str:
    """Returns how the page calls the user who wants the store account: its owner may see the nickname."""
    return conflict.claimant.nick or masked_login(conflict.claimant.login)


async def show_done(text: Text, link: str) -> Response:
    heading: Any = _("Done")
    return await page("message.html", page_title=heading, heading=heading, message=text, link=link)
