"""What a sign-in is part of, when it is part of something that goes on elsewhere: a site that asked who is there.

The pages know a journey by the path it goes on with; what it is, its own room knows.
"""

from typing import Protocol

from sso.accounts.sessions import Session


class Journey(Protocol):
    @property
    def title(self) -> str:
        """Where people want to go, in their words."""

    @property
    def form_targets(self) -> tuple[str, ...]:
        """Browsers apply the policy of a page with a form also to the redirects that follow: these must be allowed."""

    @property
    def login_hint(self) -> str: ...

    @property
    def ui_locales(self) -> str:
        """The languages in which people shall be asked, the most wanted first; "" if their own will do."""

    def accepts(self, session: Session) -> bool:
        """Whether who is signed in already will do."""


class Journeys(Protocol):
    async def find(self, path: str) -> Journey | None: ...
