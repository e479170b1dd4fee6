"""An authorization, as the sign-in pages see it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sso.accounts.login_flow import LoginFlow
from sso.accounts.sessions import Session
from sso.core.net import Address
from sso.db.errors import DatabaseError
from sso.oauth.authorize import Authorize, RedirectTo, accepts, told
from sso.oauth.errors import AuthorizationError, Finished, InvalidRedirectUri
from sso.oauth.model import AuthorizationRequest, PendingAuthorization

PATH = "/proxy/oauth/authorize/"
_ID = re.compile(re.escape(PATH) + r"([A-Za-z0-9_-]{43})", re.ASCII)


@dataclass(frozen=True)
class SiteLoginFlow:
    pending: PendingAuthorization
    authorize: Authorize

    page: str = "login.html"

    @property
    def path(self) -> str:
        return PATH + self.pending.id

    @property
    def continue_path(self) -> str:
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

    async def report_stage(self, stage: str) -> None:
        """A site need not know."""

    async def complete(self, session: Session) -> str:
        """Straight back to the site, if there is nothing to ask."""
        try:
            outcome = await self.authorize.resume(self.pending, session)
        except AuthorizationError as error:
            return told(self.pending.wanted.redirect, error, self.pending.wanted.state)
        except (Finished, DatabaseError):
            return self.path  # which tells
        return outcome.url if isinstance(outcome, RedirectTo) else self.path


class SiteLoginFlows:
    def __init__(self, authorize: Authorize) -> None:
        self._authorize = authorize

    async def find(self, path: str) -> LoginFlow | None:
        found = _ID.fullmatch(path)
        try:
            return SiteLoginFlow(await self._authorize.pending(found[1]), self._authorize) if found else None
        except (Finished, InvalidRedirectUri):
            return None


def form_targets(wanted: AuthorizationRequest) -> tuple[str, ...]:
    """Where the answer goes, and the site's other hosts: from its redirect_uri it may well send people on to one."""
    hosts = wanted.client.redirect_hosts
    others = (host if host.startswith("http://") else f"https://{host}" for host in hosts)
    return tuple(dict.fromkeys((wanted.redirect.origin, *others)))
