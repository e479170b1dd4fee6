"""The login flow of an authorization: what the sign-in pages show for it, and where they continue afterwards."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from sso.accounts.login.flow import LoginFlow
from sso.accounts.model import SignedIn
from sso.accounts.session_store import Session
from sso.core.ids import SECRET_TOKEN
from sso.core.net import Address
from sso.db.errors import DatabaseError
from sso.oauth.authorization.authorize import Authorize
from sso.oauth.authorization.code_at_sign_in import CodeAtSignIn
from sso.oauth.authorization.response import RedirectTo
from sso.oauth.authorization.session_rules import accepts, lacks_proof
from sso.oauth.clients.branding import site_brand
from sso.oauth.clients.redirect_uris import Redirect
from sso.oauth.errors import AuthorizationError, AuthorizationFinished, InvalidRedirectUri
from sso.oauth.model import Client, PendingAuthorization
from sso.web.brand import SiteBrand

PATH = "/proxy/oauth/authorize/"
_FLOW_PATH = re.compile(f"{re.escape(PATH)}({SECRET_TOKEN})", re.ASCII)


class SiteLoginFlow(Struct):
    pending: PendingAuthorization
    authorize: Authorize
    code: CodeAtSignIn | None = None

    page: str = "login.html"
    guest: None = None

    @property
    def path(self) -> str:
        return PATH + self.pending.id

    @property
    def continue_path(self) -> str:
        return self.path

    @property
    def title(self) -> str:
        return self.pending.request.client.title

    @property
    def form_targets(self) -> tuple[str, ...]:
        return form_targets(self.pending.request.client, self.pending.request.redirect)

    @property
    def site_brand(self) -> SiteBrand | None:
        return site_brand(self.pending.request.client)

    @property
    def login_hint(self) -> str:
        return self.pending.request.login_hint

    def details(self, address: Address) -> Mapping[str, Any]:
        return {}

    @property
    def ui_locales(self) -> str:
        return self.pending.request.ui_locales

    @property
    def needs_new_login(self) -> bool:
        return self.pending.login_after is not None

    def accepts(self, session: Session) -> bool:
        return accepts(self.pending, session)

    def lacks_proof(self, session: Session) -> bool:
        return lacks_proof(self.pending, session)

    async def use_another_account(self, session: Session) -> None:
        await self.authorize.decide(self.pending, session, "other")

    async def report_stage(self, stage: str) -> None:
        """Does nothing: a client is not notified of the progress of a sign-in."""

    def sign_in_extension(self, signed_in: SignedIn) -> CodeAtSignIn | None:
        self.code = self.authorize.code_at_sign_in(self.pending, signed_in)
        return self.code

    async def complete(self, session: Session) -> str:
        """Returns the URL of the client, or the path of the authorization if the user must still answer a question."""
        if self.pending.request.response_mode == "form_post":
            return self.path  # the page there has the form
        if self.code and self.code.is_issued:
            answer = self.authorize.responses.with_code(self.pending.request, self.code.code)
            assert isinstance(answer, RedirectTo)
            return answer.url
        try:
            outcome = await self.authorize.resume(self.pending, session)
        except AuthorizationError as error:
            outcome = self.authorize.responses.with_error(self.pending.request, error)
        except (AuthorizationFinished, DatabaseError):
            return self.path  # the page there shows the error
        return outcome.url if isinstance(outcome, RedirectTo) else self.path


class SiteLoginFlows:
    def __init__(self, authorize: Authorize) -> None:
        self._authorize = authorize

    async def find(self, path: str, *, remembered: bool = False) -> LoginFlow | None:
        match = _FLOW_PATH.fullmatch(path)
        if match is None:
            return None
        try:
            pending = await self._authorize.get_pending(match[1], remembered=remembered)
        except (AuthorizationFinished, InvalidRedirectUri):
            return None
        return SiteLoginFlow(pending, self._authorize)


def form_targets(client: Client, redirect: Redirect) -> tuple[str, ...]:
    """Returns the origins that the form-action of a page with a form must allow.

    Browsers apply form-action to the redirects after the form as well: to the redirect URI and, if the client redirects
    again, to another of its hosts.
    """
    hosts = client.redirect_hosts
    other_origins = (host if host.startswith("http://") else f"https://{host}" for host in hosts)
    return tuple(dict.fromkeys((redirect.origin, *other_origins)))
