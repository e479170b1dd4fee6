"""Linking an identity with an account needs a recent login to the account: the login form asks if there is none."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct

from sso.accounts.guest_upgrade_store import GuestLink
from sso.accounts.login.flow import LoginFlow, LoginFlows
from sso.accounts.model import SignedIn
from sso.accounts.recent_authentication import RecentAuthentication
from sso.accounts.session_store import Session
from sso.core.errors import ApiError
from sso.core.net import Address
from sso.upstream.identity_store import PendingIdentities
from sso.web.cookies import UPSTREAM_COOKIE, read_cookie

LINK_PATH = "/login/identity/link"  # links the identity that waits in this browser
CONFLICT_PATH = "/login/identity/conflict"  # asks about an identity that belongs to another account


class LinkLoginFlow(Struct, frozen=True):
    recent: RecentAuthentication
    inner: LoginFlow | None = None  # the flow that the identity was asked for, and that continues afterwards

    path: str = LINK_PATH
    continue_path: str = LINK_PATH
    title: str = ""
    form_targets: tuple[str, ...] = ()
    login_hint: str = ""
    page: str = "link_login.html"
    ui_locales: str = ""
    site_brand: None = None
    needs_new_login: bool = False

    @property
    def guest(self) -> GuestLink | None:
        """The guest of the game becomes the account that is created for the identity."""
        return self.inner.guest if self.inner else None

    def details(self, address: Address) -> Mapping[str, Any]:
        return self.inner.details(address) if self.inner and self.guest else {}

    def accepts(self, session: Session) -> bool:
        return self.recent.is_recent(session)

    def lacks_proof(self, session: Session) -> bool:
        """Returns False: the page says why it asks for a login, and to which account."""
        return False

    async def use_another_account(self, session: Session) -> None:
        """Does nothing: the user may sign in to any account."""

    async def report_stage(self, stage: str) -> None:
        """Does nothing: no game or site waits for this login."""

    def sign_in_extension(self, signed_in: SignedIn) -> None:
        """Returns None: the flow is completed by statements of its own."""

    async def complete(self, session: Session) -> str:
        return self.continue_path


class LinkLoginFlows:
    def __init__(self, recent: RecentAuthentication, pending: PendingIdentities, flows: LoginFlows) -> None:
        """``flows``: those that may have sent the browser to the provider."""
        self._recent = recent
        self._pending = pending
        self._flows = flows

    async def find(self, path: str, *, remembered: bool = False) -> LoginFlow | None:
        if path != LINK_PATH:
            return None
        pending, inner = await self._pending.get(read_cookie(UPSTREAM_COOKIE)), None
        with suppress(ApiError):  # the other flow may have ended
            inner = await self._flows.find(pending.next_path) if pending else None
        return LinkLoginFlow(self._recent, inner)
