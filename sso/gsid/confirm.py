"""The decision of the user in the browser about a session: view it, confirm it or deny it."""

from collections.abc import Mapping

from msgspec import Struct

from sso.accounts.device_sites import DeviceSite, DeviceSites
from sso.accounts.errors import Banned, LoginNotAllowed
from sso.accounts.guest_upgrade_store import GuestLink
from sso.accounts.model import User
from sso.accounts.ports import ApplicationDirectory
from sso.accounts.session_store import Session
from sso.accounts.sign_in_notices import SignInNotices
from sso.core.field_errors import FieldError
from sso.core.net import Address, client_network, parse_address
from sso.gsid.errors import BadLink, NoSession
from sso.gsid.guest_merges import GuestMerges, GuestPreview, GuestRefused, StoreAccountElsewhere
from sso.gsid.login_link import EMPTY_LINK, LoginLink
from sso.gsid.model import CONFIRMED, DELIVERED, GSID, PENDING, GameSessionData, LinkValues
from sso.gsid.session_store import NO_VALUES, GameSessionStore, SessionOnPage
from sso.telemetry.login_funnel import LOGIN_FUNNEL


class ConfirmationView(Struct, frozen=True):
    """A session as a page shows it."""

    gsid: str
    title: str  # the application or the site, "" if the session names none
    other_title: str  # the second application, "" if there is none
    distr: str
    address: str
    match: str
    age_s: int
    pending: bool
    delivered: bool
    waiting: bool
    confirmed_by: str | None
    parameters: Mapping[str, str]  # the link parameters that fill fields of the session
    site: DeviceSite | None  # None: a game
    application_ids: tuple[int, ...] = ()
    guest: GuestLink | None = None  # who is linked to the account, or becomes it
    linked: str | None = None
    conflict: StoreAccountElsewhere | None = None

    def same_network(self, address: Address) -> bool:
        """Whether the browser and the game have the same address (IPv6: the same /64)."""
        return client_network(parse_address(self.address)) == client_network(address)


class Confirmation:
    def __init__(
        self,
        sessions: GameSessionStore,
        applications: ApplicationDirectory,
        sites: DeviceSites,
        notices: SignInNotices,
        merges: GuestMerges,
        *,
        game_admin: bool,
    ) -> None:
        self._notices = notices
        self._merges = merges
        self._sessions = sessions
        self._applications = applications
        self._sites = sites
        self._game_admin = game_admin

    async def view(self, gsid: str, link: LoginLink = EMPTY_LINK) -> ConfirmationView:
        """Raises NoSession if the session does not exist or has ended, BadLink if a needed link value is invalid."""
        stored = await self._read(gsid)
        snapshot = stored.snapshot
        if snapshot.error:
            raise NoSession
        values = await self._link_values(stored.session, link)
        session = values.apply_to(stored.session)
        site = await self._site(session)
        guest = session.guest_link
        *others, _ = session.application_ids or (0,)
        return ConfirmationView(
            gsid=gsid,
            title=site.title if site else await self._applications.title(session.application_ids),
            other_title=await self._applications.title(tuple(others)),
            distr=session.distr,
            address=session.address,
            match=session.match,
            age_s=max(0, snapshot.ts - snapshot.started),
            pending=snapshot.status == PENDING,
            delivered=snapshot.status == DELIVERED,
            waiting=stored.waiting,
            confirmed_by=stored.user_id if snapshot.status in (CONFIRMED, DELIVERED) else None,
            parameters=link.parameters(values),
            site=site,
            application_ids=session.application_ids,
            guest=guest,
            linked=session.linked,
            conflict=await self._merges.conflict(guest) if guest and not session.linked else None,
        )

    async def is_allowed(self, gsid: str, user: User, link: LoginLink = EMPTY_LINK) -> bool:
        """Whether the user, to whose browser the page is shown, may log in to the session's applications.

        Raises Banned, and ends the session of a user who is.
        """
        session = (await self._read(gsid)).session
        await self._sessions.set_viewer(gsid, user)
        return await self._may_log_in((await self._link_values(session, link)).apply_to(session), user)

    async def grants_admin_rights(self, user: User, address: Address) -> bool:
        """Whether the game that gets this login can use administrative rights of the user."""
        return self._game_admin and await self._applications.is_administrator(user, address)

    async def confirm(self, gsid: str, browser: Session, link: LoginLink = EMPTY_LINK) -> bool:
        """Confirms the session. Returns False if it is no longer pending or the user may not log in there.

        Raises Banned, and ends the session of a user who is.
        """
        stored, user = (await self._read(gsid)).session, browser.user
        values = await self._link_values(stored, link)
        session = values.apply_to(stored)
        if session.client_id is None:
            LOGIN_FUNNEL.add("signed_in", session.application_ids, session.distr)
        if not await self._may_log_in(session, user):
            return False
        if not await self._is_linked(session, user):
            return False
        if not await self._sessions.confirm(gsid, user, values, browser.auth_time, browser.auth):
            return False
        options = session.options
        if session.client_id is not None:
            await self._sites.record_grant(browser, session.client_id, session.scopes or (), options.address)
        else:
            LOGIN_FUNNEL.add("confirmed", session.application_ids, session.distr)
            await self._notices.game_signed_in(user, options.factor, session.application_ids, options.address)
        return True

    async def guest_preview(self, view: ConfirmationView, user: User) -> GuestPreview | GuestRefused | None:
        """Returns what of the guest would move to the user, None if nothing would.

        Raises NoSession if there is no such guest any more, or the session no longer links it.
        """
        if view.guest is None or view.linked or view.guest.guest_id == user.user_id:
            return None
        preview = await self._merges.preview(view.guest, user)
        if preview is None:
            raise NoSession
        return preview

    async def application_title(self, application_id: int) -> str:
        return await self._applications.title((application_id,))

    async def _is_linked(self, session: GameSessionData, user: User) -> bool:
        """Merges the guest of the session, if it has one. Returns False if the guest cannot be linked to the user."""
        link = session.guest_link
        if link is None or link.guest_id == user.user_id:
            return True
        if session.linked:  # an earlier attempt has merged the guest, and could not confirm the session
            return await self._merges.is_merged(link, user)
        return await self._merges.merge(link, user)

    async def deny(self, gsid: str) -> bool:
        """Denies the session. Returns False if it is no longer pending."""
        await self._read(gsid)
        return await self._sessions.deny(gsid)

    async def set_stage(self, gsid: str, stage: str) -> bool:
        """Returns whether the stage has changed."""
        return await self._sessions.set_stage(gsid, stage)

    async def _read(self, gsid: str) -> SessionOnPage:
        stored = await self._sessions.read_for_page(gsid) if GSID.fullmatch(gsid) else None
        if stored is None:
            raise NoSession
        return stored

    async def _site(self, session: GameSessionData) -> DeviceSite | None:
        """Returns None for a game. Raises NoSession if the client of a device may not get tokens any more."""
        if session.client_id is None:
            return None
        site = await self._sites.get(session.client_id, session.scopes or ())
        if site is None:
            raise NoSession
        return site

    async def _link_values(self, session: GameSessionData, link: LoginLink) -> LinkValues:
        if session.client_id is not None:  # a device has no fields that a link could fill
            return NO_VALUES
        values = link.values_for(session)
        for name, application_id in (("app_id", values.app_id), ("gapp_id", values.gapp_id)):
            if application_id:
                try:
                    await self._applications.require_existing(name, application_id)
                except FieldError:
                    raise BadLink(name) from None
        return values

    async def _may_log_in(self, session: GameSessionData, user: User) -> bool:
        try:
            await self._applications.permissions(user, session.options.address, session.application_ids)
        except Banned as banned:
            await self._sessions.deny(session.gsid, banned.ban)
            raise
        except LoginNotAllowed:
            return False
        return True
