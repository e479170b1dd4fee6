"""The login that the page about a store account of two users needs: a recent one to the account that has it."""

import re
from contextlib import suppress
from urllib.parse import parse_qs, urlencode

from msgspec import Struct

from sso.accounts.guest_upgrade_store import GuestLink
from sso.accounts.login.flow import LoginFlow, LoginFlows
from sso.accounts.recent_authentication import RecentAuthentication
from sso.accounts.session_store import Session
from sso.core.errors import ApiError
from sso.gsid.login_flow import session_path
from sso.upstream.link_conflict_store import LinkConflict, LinkConflicts
from sso.upstream.recent_login import CONFLICT_PATH, LinkLoginFlow
from sso.web.cookies import UPSTREAM_COOKIE, read_cookie

_PATH = re.compile(rf"{CONFLICT_PATH}(?:\?(.*))?", re.ASCII)


def conflict_path(gsid: str = "") -> str:
    """Returns the path of the page. ``gsid``: the session of a game whose guest wanted to link the store account."""
    return CONFLICT_PATH + (f"?{urlencode({'gsid': gsid})}" if gsid else "")


class ConflictLoginFlow(LinkLoginFlow, frozen=True):
    owner_id: str = ""

    @property
    def guest(self) -> GuestLink | None:
        return None

    def accepts(self, session: Session) -> bool:
        return session.user.user_id == self.owner_id and self.recent.is_recent(session)


class OpenConflict(Struct, frozen=True):
    conflict: LinkConflict
    game: LoginFlow | None = None  # the flow of the game's session


class ConflictLoginFlows(Struct, frozen=True):
    recent: RecentAuthentication
    conflicts: LinkConflicts
    games: LoginFlows

    async def find(self, path: str, *, remembered: bool = False) -> LoginFlow | None:
        matched = _PATH.fullmatch(path)
        gsid = parse_qs(matched[1] or "").get("gsid", [""])[0] if matched else ""
        found = await self.open(gsid) if matched else None
        if found is None:
            return None
        here = conflict_path(gsid)
        return ConflictLoginFlow(self.recent, path=here, continue_path=here, owner_id=found.conflict.owner.user_id)

    async def open(self, gsid: str) -> OpenConflict | None:
        """Returns the question of the game's session, or without one that of this browser. None: there is none."""
        if not gsid:
            conflict = await self.conflicts.of_browser(read_cookie(UPSTREAM_COOKIE))
            return OpenConflict(conflict) if conflict else None
        flow = None
        with suppress(ApiError):
            flow = await self.games.find(session_path(gsid))
        if flow is None or flow.guest is None:
            return None
        conflict = await self.conflicts.of_guest(flow.guest.guest_id)
        return OpenConflict(conflict, flow) if conflict else None
