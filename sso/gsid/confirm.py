"""What the person at the browser does with a session: look at it, confirm it, deny it."""

from collections.abc import Mapping
from dataclasses import dataclass

from sso.accounts.errors import LoginNotAllowed
from sso.accounts.model import User
from sso.accounts.ports import ApplicationDirectory
from sso.core.errors import ApiError
from sso.core.net import Address, client_network, parse_address
from sso.gsid.errors import BadLink, NoSession
from sso.gsid.link import EMPTY, Link
from sso.gsid.model import CONFIRMED, DELIVERED, GSID, PENDING, Filled, GameSessionData
from sso.gsid.session_store import GameSessionStore, ShownSession


@dataclass(frozen=True)
class ConfirmationView:
    """A session as a page shows it."""

    gsid: str
    title: str  # of the application, "" if it named none
    also: str  # the name of its other application, if there are two
    distr: str
    address: str
    match: str
    age_s: int
    pending: bool
    delivered: bool
    waiting: bool
    confirmed_by: str | None
    parameters: Mapping[str, str]  # of the link, as far as they fill fields of the session

    def same_place(self, address: Address) -> bool:
        """Whether the browser is where the game is, as far as addresses tell."""
        return client_network(parse_address(self.address)) == client_network(address)


class Confirmation:
    def __init__(self, sessions: GameSessionStore, applications: ApplicationDirectory, *, game_admin: bool) -> None:
        self._sessions = sessions
        self._applications = applications
        self._game_admin = game_admin

    async def view(self, gsid: str, link: Link = EMPTY) -> ConfirmationView:
        """NoSession, if there is nothing to be seen; BadLink, if the link has a wrong value for an empty field."""
        shown = await self._shown(gsid)
        standing = shown.standing
        if standing.error:
            raise NoSession
        filled = await self._filled(shown.facts, link)
        facts = filled.apply(shown.facts)
        *others, _ = facts.application_ids or (0,)
        return ConfirmationView(
            gsid=gsid,
            title=await self._applications.title(facts.application_ids),
            also=await self._applications.title(tuple(others)),
            distr=facts.distr,
            address=facts.address,
            match=facts.match,
            age_s=max(0, standing.ts - standing.started),
            pending=standing.status == PENDING,
            delivered=standing.status == DELIVERED,
            waiting=shown.waiting,
            confirmed_by=shown.user_id if standing.status in (CONFIRMED, DELIVERED) else None,
            parameters=link.parameters(filled),
        )

    async def is_allowed(self, gsid: str, user: User, link: Link = EMPTY) -> bool:
        """May this user log in where the session leads?"""
        facts = (await self._shown(gsid)).facts
        return await self._may_log_in((await self._filled(facts, link)).apply(facts), user)

    async def hands_over_rights(self, user: User, address: Address) -> bool:
        """Whether the game that gets this sign-in can use administrative rights of the user."""
        return self._game_admin and await self._applications.is_administrator(user, address)

    async def confirm(self, gsid: str, user: User, link: Link = EMPTY) -> bool:
        """The first to confirm is the one. False: somebody else was, or it has ended, or this user may not."""
        facts = (await self._shown(gsid)).facts
        filled = await self._filled(facts, link)
        return await self._may_log_in(filled.apply(facts), user) and await self._sessions.confirm(gsid, user, filled)

    async def deny(self, gsid: str) -> bool:
        await self._shown(gsid)
        return await self._sessions.deny(gsid)

    async def reach(self, gsid: str, stage: str) -> None:
        await self._sessions.reach(gsid, stage)

    async def _shown(self, gsid: str) -> ShownSession:
        shown = await self._sessions.show(gsid) if GSID.fullmatch(gsid) else None
        if shown is None:
            raise NoSession
        return shown

    async def _filled(self, facts: GameSessionData, link: Link) -> Filled:
        filled = link.fill(facts)
        for name, application_id in (("app_id", filled.app_id), ("gapp_id", filled.gapp_id)):
            if application_id:
                try:
                    await self._applications.require_existing((application_id,))
                except ApiError:
                    raise BadLink(name) from None
        return filled

    async def _may_log_in(self, facts: GameSessionData, user: User) -> bool:
        try:
            await self._applications.permissions(user, facts.options.address, facts.application_ids)
        except LoginNotAllowed:
            return False
        return True
