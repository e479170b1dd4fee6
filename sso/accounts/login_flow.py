"""What a sign-in is part of, when it is part of something that goes on elsewhere: a site, or a game, that asked who is
there.

The pages know a journey by the path it goes on with; what it is, its own room knows.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from sso.accounts.sessions import Session
from sso.core.net import Address


class LoginFlow(Protocol):
    @property
    def path(self) -> str:
        """By which it is found again."""

    @property
    def continue_path(self) -> str:
        """Where it goes on for somebody who is signed in."""

    @property
    def title(self) -> str:
        """Where people want to go, in their words."""

    @property
    def page(self) -> str:
        """The template of its sign-in form."""

    @property
    def form_targets(self) -> tuple[str, ...]:
        """Browsers apply the policy of a page with a form also to the redirects that follow: these must be allowed."""

    @property
    def login_hint(self) -> str: ...

    def details(self, address: Address) -> Mapping[str, Any]:
        """What that template shows besides, to a browser at this address."""

    @property
    def ui_locales(self) -> str:
        """The languages in which people shall be asked, the most wanted first; "" if their own will do."""

    def accepts(self, session: Session) -> bool:
        """Whether who is signed in already will do."""

    async def report_stage(self, stage: str) -> None:
        """The browser is this far: "signing_in", "second_factor"."""

    async def complete(self, session: Session) -> str:
        """Somebody has signed in for it, this moment. Where it goes on."""


class LoginFlows(Protocol):
    async def find(self, path: str) -> LoginFlow | None: ...


class CombinedLoginFlows:
    """Of several rooms: the first that knows the path."""

    def __init__(self, *rooms: LoginFlows) -> None:
        self._rooms = rooms

    async def find(self, path: str) -> LoginFlow | None:
        for room in self._rooms:
            if journey := await room.find(path):
                return journey
        return None
