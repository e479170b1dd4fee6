"""The login flow of a game session: a login on the page of a game's session confirms it.

A device is confirmed on the page after the login, because the user also decides what the site will know.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

from msgspec import Struct

from sso.accounts.guest_upgrade_store import GuestLink
from sso.accounts.login.flow import LoginFlow
from sso.accounts.model import SignedIn
from sso.accounts.session_store import Session
from sso.core.net import Address
from sso.gsid.confirm import Confirmation, ConfirmationView
from sso.gsid.errors import NoSession
from sso.gsid.login_link import LoginLink
from sso.gsid.model import OPENED
from sso.telemetry.login_funnel import LOGIN_FUNNEL
from sso.web.brand import SiteBrand

NO_PARAMETERS: Mapping[str, str] = {}
_SESSION_LINK = re.compile(r"/\?(.*)", re.ASCII)


class GameLoginFlow(Struct, frozen=True):
    view: ConfirmationView
    confirmation: Confirmation

    form_targets: tuple[str, ...] = ()
    login_hint: str = ""
    needs_new_login: bool = False

    @property
    def page(self) -> str:
        return "login.html" if self.view.site else "game_login.html"

    @property
    def site_brand(self) -> SiteBrand | None:
        return self.view.site.brand if self.view.site else None

    @property
    def guest(self) -> GuestLink | None:
        return self.view.guest if self.view.pending and not self.view.linked else None

    @property
    def ui_locales(self) -> str:
        return self.view.parameters.get("lang", "")

    @property
    def path(self) -> str:
        return session_path(self.view.gsid, self.view.parameters)

    @property
    def title(self) -> str:
        return self.view.title

    def details(self, address: Address) -> Mapping[str, Any]:
        if not self.view.pending:
            raise NoSession
        if self.view.site:
            return {}
        return {
            "game": self.view,
            "same_network": self.view.same_network(address),
            "deny": deny_path(self.view.gsid, self.view.parameters),
        }

    def accepts(self, session: Session) -> bool:
        return True

    def lacks_proof(self, session: Session) -> bool:
        return False

    async def use_another_account(self, session: Session) -> None:
        """Does nothing: every session is accepted."""

    @property
    def continue_path(self) -> str:
        return decision_path(self.view.gsid, self.view.parameters)

    async def report_stage(self, stage: str) -> None:
        await self.confirmation.set_stage(self.view.gsid, stage)

    def sign_in_extension(self, signed_in: SignedIn) -> None:
        """Returns None: the flow is completed by statements of its own."""

    async def complete(self, session: Session) -> str:
        """Confirms the session of a game. Returns the path of the page that shows its result, or asks for a device."""
        if self.view.site is None and not self._asks_to_merge(session):
            with suppress(NoSession):
                await self.confirmation.confirm(self.view.gsid, session, LoginLink.from_form(self.view.parameters))
        return self.continue_path

    def _asks_to_merge(self, session: Session) -> bool:
        """Whether the page first shows what of the guest moves to the account."""
        return self.view.guest is not None and self.view.guest.guest_id != session.user.user_id


class GameLoginFlows:
    def __init__(self, confirmation: Confirmation) -> None:
        self._confirmation = confirmation

    async def find(self, path: str, *, remembered: bool = False) -> LoginFlow | None:
        """Returns None if the path is no link to a session.

        Raises NoSession if the session does not exist or has ended, BadLink if the link has an invalid value.
        """
        query = _SESSION_LINK.fullmatch(path)
        gsids = _gsids(query[1]) if query else []
        if not gsids:
            return None
        if len(gsids) > 1:
            raise NoSession
        assert query is not None
        view = await self._confirmation.view(gsids[0], LoginLink.from_query(query[1]))
        if await self._confirmation.set_stage(view.gsid, OPENED) and view.site is None:
            LOGIN_FUNNEL.add("opened", view.application_ids, view.distr)
        return GameLoginFlow(view, self._confirmation)


def _gsids(query: str) -> list[str]:
    try:
        return parse_qs(query, keep_blank_values=True, max_num_fields=100).get("gsid", [])
    except ValueError:
        return []


def session_path(gsid: str, parameters: Mapping[str, str] = NO_PARAMETERS) -> str:
    """Returns the path of the session's link. Everything is quoted, because ``gsid`` may be any text from a URL."""
    return f"/?{urlencode({'gsid': gsid, **parameters})}"


def deny_path(gsid: str, parameters: Mapping[str, str] = NO_PARAMETERS) -> str:
    """Returns the path of the page that asks whether to stop the sign-in. It needs no session."""
    return f"{decision_path(gsid)}/deny" + (f"?{urlencode(parameters)}" if parameters else "")


def decision_path(gsid: str, parameters: Mapping[str, str] = NO_PARAMETERS) -> str:
    """Returns the path of the page where a signed-in user confirms or denies the session."""
    return f"/game/{quote(gsid, safe='')}" + (f"?{urlencode(parameters)}" if parameters else "")
