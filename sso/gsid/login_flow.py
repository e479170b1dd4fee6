"""A game session, as the sign-in pages see it: signing in on its page confirms it."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

from sso.accounts.login_flow import LoginFlow
from sso.accounts.sessions import Session
from sso.core.net import Address
from sso.gsid.confirm import Confirmation, ConfirmationView
from sso.gsid.errors import NoSession
from sso.gsid.link import Link
from sso.gsid.model import OPENED

NO_PARAMETERS: Mapping[str, str] = {}
_FRONT_DOOR = re.compile(r"/\?(.*)", re.ASCII)


@dataclass(frozen=True)
class GameLoginFlow:
    view: ConfirmationView
    confirm: Confirmation

    form_targets: tuple[str, ...] = ()
    login_hint: str = ""
    page: str = "game_login.html"

    @property
    def ui_locales(self) -> str:
        return self.view.parameters.get("lang", "")

    @property
    def path(self) -> str:
        return front_path(self.view.gsid, self.view.parameters)

    @property
    def title(self) -> str:
        return self.view.title

    def details(self, address: Address) -> Mapping[str, Any]:
        if not self.view.pending:  # there is nothing to sign in for
            raise NoSession
        return {"game": self.view, "same_place": self.view.same_place(address)}

    def accepts(self, session: Session) -> bool:
        return True

    @property
    def continue_path(self) -> str:
        return decision_path(self.view.gsid, self.view.parameters)

    async def report_stage(self, stage: str) -> None:
        await self.confirm.reach(self.view.gsid, stage)

    async def complete(self, session: Session) -> str:
        """Whether it could be confirmed, the page it leads to tells."""
        with suppress(NoSession):
            await self.confirm.confirm(self.view.gsid, session.user, Link.from_form(self.view.parameters))
        return self.continue_path


class GameLoginFlows:
    def __init__(self, confirm: Confirmation) -> None:
        self._confirm = confirm

    async def find(self, path: str) -> LoginFlow | None:
        """NoSession for a link that leads nowhere any more, BadLink for one with a wrong value."""
        query = _FRONT_DOOR.fullmatch(path)
        named = _gsids(query[1]) if query else []
        if not named:
            return None
        if len(named) > 1:
            raise NoSession
        assert query is not None
        view = await self._confirm.view(named[0], Link.from_query(query[1]))
        await self._confirm.reach(view.gsid, OPENED)
        return GameLoginFlow(view, self._confirm)


def _gsids(query: str) -> list[str]:
    try:
        return parse_qs(query, keep_blank_values=True, max_num_fields=100).get("gsid", [])
    except ValueError:
        return []


def front_path(gsid: str, parameters: Mapping[str, str] = NO_PARAMETERS) -> str:
    """Quoted, as all that goes into a header: an address may hold anything in the place of a gsid."""
    return f"/?{urlencode({'gsid': gsid, **parameters})}"


def decision_path(gsid: str, parameters: Mapping[str, str] = NO_PARAMETERS) -> str:
    return f"/game/{quote(gsid, safe='')}" + (f"?{urlencode(parameters)}" if parameters else "")
