"""Changes of the ways to sign in need a recent login: the login form asks again if the session is older."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sso.accounts.login.flow import LoginFlow
from sso.accounts.sessions import Session
from sso.core.net import Address
from sso.db.clock import DatabaseClock

RECENT_S = 600
LINK_PATH = "/login/identity/link"  # links the identity that waits in this browser
ACCOUNT_PATH = "/account/identities"  # the section of the account page
CONTINUE_PATHS = {LINK_PATH: LINK_PATH, ACCOUNT_PATH: "/account#identities"}


@dataclass(frozen=True)
class RecentLoginFlow:
    path: str
    clock: DatabaseClock

    title: str = ""
    form_targets: tuple[str, ...] = ()
    login_hint: str = ""
    page: str = "recent_login.html"
    ui_locales: str = ""

    @property
    def continue_path(self) -> str:
        return CONTINUE_PATHS[self.path]

    def details(self, address: Address) -> Mapping[str, Any]:
        return {"to_link": self.path == LINK_PATH}

    def accepts(self, session: Session) -> bool:
        return is_recent(session, self.clock)

    async def report_stage(self, stage: str) -> None:
        """Does nothing: no game or site waits for this login."""

    async def complete(self, session: Session) -> str:
        return self.continue_path


class RecentLoginFlows:
    def __init__(self, clock: DatabaseClock) -> None:
        self._clock = clock

    async def find(self, path: str) -> LoginFlow | None:
        return RecentLoginFlow(path, self._clock) if path in CONTINUE_PATHS else None


def is_recent(session: Session, clock: DatabaseClock) -> bool:
    return clock.now() - session.created.timestamp() < RECENT_S
