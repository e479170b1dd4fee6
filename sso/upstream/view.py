"""What the pages of a sign-in with another provider share: the redirect to the provider, and failures."""

from typing import Any

import structlog
from quart import Response

from sso.accounts.errors import TooManyAttempts
from sso.accounts.login.flow import LoginFlow, LoginFlows, form_targets_of_path
from sso.accounts.login.form import LoginForm
from sso.accounts.login.messages import retry_message
from sso.core.errors import ApiError
from sso.core.language import Text
from sso.db.rate_limit import RateLimiter
from sso.upstream.attempt_store import BegunAttempt
from sso.upstream.errors import UpstreamError
from sso.upstream.model import IdentityProvider
from sso.upstream.sign_in import UpstreamSignIn
from sso.web.cookies import UPSTREAM_COOKIE, set_cookie, visit_secret
from sso.web.language import _
from sso.web.pages import page
from sso.web.redirects import see_other
from sso.web.request import client_address

COOKIE_S = 3600  # after the last sign-in began: longer than an attempt, and an identity that waits for an account
log = structlog.get_logger()


class UpstreamView:
    def __init__(
        self, sign_in: UpstreamSignIn, login_flows: LoginFlows, login_form: LoginForm, rate: RateLimiter
    ) -> None:
        self._sign_in = sign_in
        self._login_flows = login_flows
        self._login_form = login_form
        self._rate = rate

    async def count_request(self) -> None:
        """Raises TooManyAttempts if this client sends too many requests."""
        if wait_s := await self._rate.add(client_address()):
            raise TooManyAttempts(wait_s)

    async def redirect_to_provider(
        self, provider: IdentityProvider, next_path: str, user_id: str | None = None
    ) -> Response:
        """Sends the browser to the provider. With ``user_id``, that user links the identity, by a form."""
        browser_secret, _is_new = visit_secret(UPSTREAM_COOKIE)
        try:
            flow = await self._login_flows.find(next_path) if next_path else None
            needs_new_login = flow is not None and flow.needs_new_login
            url = await self._sign_in.begin(
                provider, browser_secret, next_path, user_id, needs_new_login=needs_new_login
            )
        except UpstreamError as error:
            return await self.show_failure(provider, error, BegunAttempt(next_path, user_id, 0))
        response = see_other(url) if user_id is None else await _leave_form(url, provider)
        set_cookie(response, UPSTREAM_COOKIE, browser_secret, COOKIE_S)
        return response

    async def flow(self, next_path: str) -> LoginFlow | None:
        """Returns the flow that waits for the sign-in, or None if there is none, or it has ended."""
        try:
            return await self._login_flows.find(next_path) if next_path else None
        except ApiError:
            return None

    async def form_targets(self, next_path: str) -> tuple[str, ...]:
        """Returns the origins for the form-action policy of a page whose form continues at this path."""
        return await form_targets_of_path(self._login_flows, next_path)

    async def show_failure(
        self, provider: IdentityProvider, error: UpstreamError, begun: BegunAttempt | None = None
    ) -> Response:
        """Shows the login form again, or a page that leads back to the account page if an identity was to be linked."""
        log.warning("upstream.sign_in_failed", provider=provider.provider_id, reason=error.reason)
        text = Text(error.text, provider=provider.name)
        if begun and begun.user_id is not None:
            return await show_problem(_("Not linked"), text, error.status, "/account")
        return await self._show_login_form(begun.next_path if begun else "", problem=text, status=error.status)

    async def show_too_many(self, error: TooManyAttempts, next_path: str = "") -> Response:
        return await self._show_login_form(
            next_path, problem=retry_message(error), status=error.status, headers=error.headers
        )

    async def _show_login_form(self, next_path: str, **context: Any) -> Response:
        flow = await self._login_flows.find(next_path) if next_path else None
        return await self._login_form.show(flow, next_path or None, **context)


async def _leave_form(url: str, provider: IdentityProvider) -> Response:
    """A form may not redirect to other sites (the policy ``form-action``), so a page in between leads there."""
    heading = _("Continue with %(provider)s", provider=provider.name)
    return await page(
        "message.html", headers={"Refresh": f"0; url={url}"}, page_title=heading, heading=heading, message="", link=url
    )


async def show_problem(heading: str, text: Text, status: int, link: str) -> Response:
    return await page(
        "message.html", status=status, page_title=heading, heading=heading, problem=text, message="", link=link
    )
