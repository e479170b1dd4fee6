"""Linking an identity with an account needs a recent login to the account: the login form asks if there is none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sso.accounts.login.flow import LoginFlow
from sso.accounts.recent_authentication import RecentAuthentication
from sso.accounts.session_store import Session
from sso.core.net import Address

LINK_PATH = "/login/identity/link"  # links the identity that waits in this browser


@dataclass(frozen=True)
class LinkLoginFlow:
    recent: RecentAuthentication

    path: str = LINK_PATH
    continue_path: str = LINK_PATH
    title: str = ""
    form_targets: tuple[str, ...] = ()
    login_hint: str = ""
    page: str = "link_login.html"
    ui_locales: str = ""
    site_brand: None = None
    needs_new_login: bool = False
    guest: None = None

    def details(self, address: Address) -> Mapping[str, Any]:
        return {}

    def accepts(self, session: Session) -> bool:
        return self.recent.is_recent(session)

    async def report_stage(self, stage: str) -> None:
        """Does nothing: no game or site waits for this login."""

    async def complete(self, session: Session) -> str:
        return self.continue_path


class LinkLoginFlows:
    def __init__(self, recent: RecentAuthentication) -> None:
        self._flow = LinkLoginFlow(recent)

    async def find(self, path: str) -> LoginFlow | None:
        return self._flow if path == LINK_PATH else None
