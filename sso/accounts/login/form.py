"""The login form, on its own page or on the page of a login flow."""

from typing import Any

from quart import Response

from sso.accounts.login.flow import LoginFlow, LoginFlows, form_targets_of_path
from sso.accounts.login.view import next_query
from sso.accounts.passkeys.authentication import PasskeyAuthentication
from sso.accounts.ports import SignInProviders
from sso.web.cookies import VISIT_COOKIE, set_cookie, visit_secret
from sso.web.csrf import csrf_token
from sso.web.language import _
from sso.web.pages import page
from sso.web.redirects import safe_next
from sso.web.request import client_address


class LoginForm:
    """Shows the form, with the ways to sign in that this service offers."""

    def __init__(
        self,
        passkeys: PasskeyAuthentication,
        providers: SignInProviders,
        login_flows: LoginFlows,
        *,
        can_register: bool,
    ) -> None:
        self._passkeys = passkeys
        self._login_flows = login_flows
        self._providers = providers
        self._can_register = can_register

    async def show(
        self,
        flow: LoginFlow | None,
        next_path: str | None = None,
        *,
        status: int = 200,
        login: str = "",
        **context: Any,
    ) -> Response:
        """``next_path`` is where to go after the login if there is no flow, or if it is no longer known."""
        secret, is_new = visit_secret()
        relying_party = self._passkeys.relying_party
        if flow:
            next_path = flow.path
            login = login or flow.login_hint
        details = flow.details(client_address()) if flow else {}
        own = {
            "csrf": csrf_token(secret),
            "next": safe_next(next_path) if next_path else "",
            "next_query": next_query(next_path),
            "login": login,
            "passkey_challenge": self._passkeys.sign_in_challenge(secret),
        }
        response = await page(
            flow.page if flow else "login.html",
            status=status,
            page_title=_("Sign in"),
            site=flow.title if flow else "",
            form_targets=flow.form_targets if flow else await form_targets_of_path(self._login_flows, next_path),
            site_brand=flow.site_brand if flow else None,
            action="/login",
            can_register=self._can_register,
            passkey_rp_id=relying_party.id if relying_party else "",
            here="/login" + next_query(next_path),
            providers=self._providers.buttons,
            **({**own, **details} if details else {"own": own}),
            **context,
        )
        if is_new:
            set_cookie(response, VISIT_COOKIE, secret)
        return response
