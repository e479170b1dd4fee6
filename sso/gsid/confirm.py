"""What the person at the browser does with a session: look at it, confirm it, deny it."""

from dataclasses import dataclass

from sso.accounts.applications import ApplicationsAtLogin, LoginNotAllowed
from sso.accounts.model import User
from sso.core.net import Address, parse_address
from sso.gsid.errors import NoSession
from sso.gsid.limits import network_of
from sso.gsid.model import CONFIRMED, DELIVERED, GSID, PENDING, Facts
from sso.gsid.store import GameSessions, Shown


@dataclass(frozen=True)
class View:
    """A session as a page shows it."""

    gsid: str
    title: str  # of the application, "" if it named none
    distr: str
    address: str
    match: str
    age_s: int
    pending: bool
    delivered: bool
    waiting: bool
    confirmed_by: str | None

    def same_place(self, address: Address) -> bool:
        """Whether the browser is where the game is, as far as addresses tell."""
        return network_of(parse_address(self.address)) == network_of(address)


class Confirm:
    def __init__(self, sessions: GameSessions, applications: ApplicationsAtLogin, *, game_admin: bool) -> None:
        self._sessions = sessions
        self._applications = applications
        self._game_admin = game_admin

    async def view(self, gsid: str) -> View:
        """NoSession, if there is nothing to be seen."""
        shown = await self._shown(gsid)
        facts, standing = shown.facts, shown.standing
        if standing.error:
            raise NoSession
        return View(
            gsid=gsid,
            title=await self._applications.title(facts.applications),
            distr=facts.distr,
            address=facts.address,
            match=facts.match,
            age_s=max(0, standing.ts - standing.started),
            pending=standing.status == PENDING,
            delivered=standing.status == DELIVERED,
            waiting=shown.waiting,
            confirmed_by=shown.user_id if standing.status in (CONFIRMED, DELIVERED) else None,
        )

    async def is_allowed(self, gsid: str, user: User) -> bool:
        """May this user log in where the session leads?"""
        return await self._may_log_in((await self._shown(gsid)).facts, user)

    async def hands_over_rights(self, user: User, address: Address) -> bool:
        """Whether the game that gets this sign-in can use administrative rights of the user."""
        return self._game_admin and await self._applications.is_administrator(user, address)

    async def confirm(self, gsid: str, user: User) -> bool:
        """The first to confirm is the one. False: somebody else was, or it has ended, or this user may not."""
        shown = await self._shown(gsid)
        return await self._may_log_in(shown.facts, user) and await self._sessions.confirm(gsid, user)

    async def deny(self, gsid: str) -> bool:
        await self._shown(gsid)
        return await self._sessions.deny(gsid)

    async def reach(self, gsid: str, stage: str) -> None:
        await self._sessions.reach(gsid, stage)

    async def _shown(self, gsid: str) -> Shown:
        shown = await self._sessions.show(gsid) if GSID.fullmatch(gsid) else None
        if shown is None:
            raise NoSession
        return shown

    async def _may_log_in(self, facts: Facts, user: User) -> bool:
        try:
            await self._applications.permissions(user, facts.options.address, facts.applications)
        except LoginNotAllowed:
            return False
        return True
