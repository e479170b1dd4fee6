"""Notices by mail about sign-ins with a browser, game or device that the account has not been used with before.

Only a completed sign-in causes a notice. An account gets at most one in PAUSE_S; the account page lists all sign-ins.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC
from functools import partial

import structlog

from sso.accounts.history.events import EventKind, record_event
from sso.accounts.known_devices import FactorDevice, KnownDevices
from sso.accounts.model import LoginOptions, User
from sso.accounts.ports import ApplicationDirectory
from sso.accounts.user_change_store import mark_first_sign_in, turn_notices
from sso.core.brand import CurrentBrand
from sso.core.language import Text, in_language
from sso.core.net import Address, client_network
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.db.rate_limit import claim_turn
from sso.db.transaction import Transaction
from sso.mail.content import MailContent
from sso.mail.outbox import Outbox

PAUSE_S = 600


log = structlog.get_logger()


class SignInNotices:
    def __init__(
        self,
        database: Database,
        devices: KnownDevices,
        applications: ApplicationDirectory,
        outbox: Outbox,
        base_url: str,
        brand: CurrentBrand,
    ) -> None:
        self._devices = devices
        self._title = applications.title
        self._database = database
        self._outbox = outbox
        self._base_url = base_url
        self._brand = brand

    async def browser_signed_in(self, user: User, device_cookie: str, label: str, address: Address) -> None:
        """``device_cookie`` is the cookie that the browser sent, before it got a new one."""
        if not await self._devices.recognize_browser(user.login_key, device_cookie):
            await self.send(user, label, address)

    async def client_signed_in(self, user: User, client: FactorDevice, has_factor: bool, options: LoginOptions) -> None:
        """A program has signed in with a password. One that sends no factor is recognized by its network."""
        if not has_factor:
            client = await self._devices.recognize_place(user.login_key, f"network {client_network(options.address)}")
            await self._devices.remember(user, client)
        if not client.name:
            await self._send_about_game(user, await self._title(options.application_ids), options.address)

    async def game_signed_in(self, user: User, factor: str, application_ids: tuple[int, ...], address: Address) -> None:
        """The user has confirmed the sign-in of a game on its page."""
        place = f"game {application_ids} {factor or client_network(address)}"
        await self._signed_in_elsewhere(user, place, partial(self._title, application_ids), address)

    async def site_signed_in(self, user: User, client_id: str, title: str, address: Address) -> None:
        """The user has confirmed the sign-in of a site's device on its page."""

        async def get_title() -> str:
            return title

        await self._signed_in_elsewhere(user, f"site {client_id} {client_network(address)}", get_title, address)

    async def _signed_in_elsewhere(
        self, user: User, place: str, get_title: Callable[[], Awaitable[str]], address: Address
    ) -> None:
        if user.first_sign_in is None:  # a part of the first sign-in ever
            return
        device = await self._devices.recognize_place(user.login_key, place)
        if not device.name:
            await self._send_about_game(user, await get_title(), address)
        await self._devices.remember(user, device)

    async def _send_about_game(self, user: User, title: str, address: Address) -> None:
        with in_language(user.lang):
            await self.send(user, title or Text("a game or app").translated(), address)

    async def send(self, user: User, device: str, address: Address) -> None:
        """Tells the user about a sign-in with an unknown device, unless it is the first one or notices are off.

        A failure is logged and does not affect the sign-in.
        """
        if user.first_sign_in is not None and not user.sign_in_notices:
            return
        try:
            await self._database.transaction(self._put, user, device, address)
        except DatabaseError as error:
            log.warning("sign_in_notice.failed", reason=str(error))

    async def turn(self, user: User, *, on: bool) -> None:
        async def work(tx: Transaction) -> None:
            if await turn_notices(tx, user.user_id, on=on):
                await record_event(tx, user.user_id, EventKind.NOTICES_ON if on else EventKind.NOTICES_OFF)

        await self._database.transaction(work)

    async def _put(self, tx: Transaction, user: User, device: str, address: Address) -> None:
        if user.first_sign_in is None and await mark_first_sign_in(tx, user.user_id):
            return
        if user.sign_in_notices and await claim_turn(tx, f"sign-in notice:{user.user_id}", PAUSE_S):
            await self._outbox.put(tx, user.login, self._mail(device, address), user.lang)

    def _mail(self, device: str, address: Address) -> MailContent:
        time = self._database.clock.utc().astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
        return MailContent(
            Text("New sign-in to %(service)s", service=self._brand.name),
            (
                Text(
                    "Someone signed in to your account: %(device)s, address %(address)s, at %(time)s.",
                    device=device,
                    address=str(address),
                    time=time,
                ),
                Text(
                    "If this was you, there is nothing to do. If not, change your password now: that signs everyone "
                    "out. Your account page lists every browser, game and site that is signed in:"
                ),
            ),
            (
                Text(
                    "We send at most one such e-mail in %(minutes)s minutes. You can turn them off on your account "
                    "page.",
                    minutes=PAUSE_S // 60,
                ),
            ),
            link=f"{self._base_url}/account",
            link_label=Text("Open my account page"),
        )
