"""The flow that a login belongs to: a site's authorization request, or a game's sign-in.

The login pages find a flow by the path at which it continues. The packages ``oauth`` and ``gsid`` implement the flows.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from sso.accounts.guest_upgrade_store import GuestLink
from sso.accounts.model import SignedIn
from sso.accounts.session_store import Session
from sso.accounts.sign_in_extension import SignInExtension
from sso.core.errors import ApiError
from sso.core.net import Address
from sso.web.brand import SiteBrand
from sso.web.redirects import safe_next

MAX_PATHS = 5  # of pages and a flow, each in the query of the one before


class LoginFlow(Protocol):
    @property
    def path(self) -> str:
        """The path that identifies the flow."""

    @property
    def continue_path(self) -> str:
        """Where the flow continues for a user who is signed in."""

    @property
    def title(self) -> str:
        """The name of the site or game, as users know it."""

    @property
    def page(self) -> str:
        """The template of the flow's login form."""

    @property
    def form_targets(self) -> tuple[str, ...]:
        """Origins for the form-action policy: browsers apply it to the redirects that follow a form as well."""

    @property
    def site_brand(self) -> SiteBrand | None:
        """The look of the site, if it has one of its own."""

    @property
    def login_hint(self) -> str: ...

    @property
    def guest(self) -> GuestLink | None:
        """The guest who becomes the account that is created in this flow."""

    def details(self, address: Address) -> Mapping[str, Any]:
        """Returns further values for the template, for a browser at this address."""

    @property
    def ui_locales(self) -> str:
        """The languages that the flow asks for, most preferred first; "" if it does not ask for any."""

    @property
    def needs_new_login(self) -> bool:
        """Whether the user must prove who they are again, so that a provider must not sign them in silently."""

    def accepts(self, session: Session) -> bool:
        """Returns True if the flow can continue with this session, without another login."""

    def lacks_proof(self, session: Session) -> bool:
        """Returns True if the flow could continue with this session, had its user proved in it who they are."""

    async def use_another_account(self, session: Session) -> None:
        """Continues only with a session that begins from now on, because the user does not want this one."""

    async def report_stage(self, stage: str) -> None:
        """Records how far the login is: "signing_in" or "second_factor"."""

    def sign_in_extension(self, signed_in: SignedIn) -> SignInExtension | None:
        """Returns an extension of the statement that starts the session, or None. `complete` is called afterwards."""

    async def complete(self, session: Session) -> str:
        """Continues the flow after a login. Returns the URL or path to redirect to."""


class LoginFlows(Protocol):
    async def find(self, path: str, *, remembered: bool = False) -> LoginFlow | None:
        """``remembered``: the flow may be as it was when its page was made, because its completion is checked."""


class CombinedLoginFlows:
    """Asks several sources in turn; the first that knows the path provides the flow."""

    def __init__(self, *sources: LoginFlows) -> None:
        self._sources = sources

    async def find(self, path: str, *, remembered: bool = False) -> LoginFlow | None:
        for source in self._sources:
            if flow := await source.find(path, remembered=remembered):
                return flow
        return None


async def form_targets_of_path(flows: LoginFlows, next_path: str | None) -> tuple[str, ...]:
    """Returns the `form_targets` of a page whose form continues at this path; none if no flow continues there.

    Our pages between the form and the flow, such as the sign-in page, have the next path in their query.
    """
    if not next_path:
        return ()
    path = safe_next(next_path)
    for _ in range(MAX_PATHS):
        with suppress(ApiError):  # the flow has ended in the meantime
            if flow := await flows.find(path):
                return flow.form_targets
        inner = parse_qs(urlsplit(path).query).get("next")
        if inner is None:
            break
        path = safe_next(inner[0])
    return ()
