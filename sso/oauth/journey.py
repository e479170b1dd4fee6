"""An authorization, as the sign-in pages see it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sso.accounts.journey import Journey
from sso.accounts.model import SignedIn
from sso.accounts.sessions import Session
from sso.core.net import Address
from sso.oauth.authorize import accepts
from sso.oauth.errors import NotTheirs
from sso.oauth.model import Pending, Wanted
from sso.oauth.requests import Requests

PATH = "/proxy/oauth/authorize/"
_ID = re.compile(re.escape(PATH) + r"([A-Za-z0-9_-]{43})", re.ASCII)


@dataclass(frozen=True)
class SiteJourney:
    pending: Pending

    page: str = "signin.html"

    @property
    def path(self) -> str:
        return PATH + self.pending.id

    @property
    def onward(self) -> str:
        return self.path

    @property
    def title(self) -> str:
        return self.pending.wanted.client.title

    @property
    def form_targets(self) -> tuple[str, ...]:
        return form_targets(self.pending.wanted)

    @property
    def login_hint(self) -> str:
        return self.pending.wanted.login_hint

    def details(self, address: Address) -> Mapping[str, Any]:
        return {}

    @property
    def ui_locales(self) -> str:
        return self.pending.wanted.ui_locales

    def accepts(self, session: Session) -> bool:
        return accepts(self.pending, session)

    async def reached(self, stage: str) -> None:
        """A site need not know."""

    async def arrived(self, signed_in: SignedIn) -> str:
        return self.path


class SiteJourneys:
    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def find(self, path: str) -> Journey | None:
        found = _ID.fullmatch(path)
        try:
            pending = await self._requests.find(found[1]) if found else None
        except NotTheirs:
            return None
        return SiteJourney(pending) if pending else None


def form_targets(wanted: Wanted) -> tuple[str, ...]:
    """Where the answer goes, and the site's other hosts: from its redirect_uri it may well send people on to one."""
    hosts = wanted.client.redirect_hosts
    others = (host if host.startswith("http://") else f"https://{host}" for host in hosts)
    return tuple(dict.fromkeys((wanted.redirect.origin, *others)))
