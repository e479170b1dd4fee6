"""Tests whether a provider can be reached and answers as a sign-in needs it, and names the field that is wrong.

It sends the requests of a sign-in, by the same client and with its protections. The token endpoint gets a code that
does not exist, so that it answers with an error; which one says whether it accepts the id and secret of the client.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import trio

from sso.upstream.authorization_code import TokenRefused, redeem_code
from sso.upstream.connection_step import ConnectionStep, keys_step
from sso.upstream.discovery import DOCUMENT_PATH, json_of, parse_metadata
from sso.upstream.errors import UpstreamError
from sso.upstream.http_client import ProviderClient
from sso.upstream.model import Attempt, IdentityProvider, clean_text
from sso.upstream.oauth2 import AUTH_METHODS
from sso.upstream.steam import endpoint
from sso.upstream.tickets.connection_test import store_steps

MAX_TEST_S = 25.0
NO_CODE = "connection-test"  # no provider has issued it
_WRONG_CLIENT = frozenset(("invalid_client", "unauthorized_client", "incorrect_client_credentials"))


class ConnectionTest:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def run(self, provider: IdentityProvider, secret: str | None, callback_url: str) -> list[ConnectionStep]:
        """Returns the steps up to the first one that decides that the others cannot be tested."""
        attempt = Attempt.new("connection test", callback_url, needs_new_login=False)
        tests = {"oidc": self._test_oidc, "oauth2": self._test_oauth2, "steam": self._test_steam}
        steps: list[ConnectionStep] = []
        with trio.move_on_after(MAX_TEST_S) as scope:
            if provider.is_for_tickets:
                steps_of_kind = store_steps(self._client, provider, secret)
            else:
                steps_of_kind = tests[provider.kind](provider, secret, attempt)
            async with aclosing(steps_of_kind) as tested:
                async for step in tested:
                    steps.append(step)  # noqa: PERF401 - those before the end of the time are kept
        if scope.cancelled_caught:
            steps.append(ConnectionStep("Time", False, f"the test was ended after {MAX_TEST_S:.0f} seconds"))
        return steps

    async def _test_oidc(
        self, provider: IdentityProvider, secret: str | None, attempt: Attempt
    ) -> AsyncGenerator[ConnectionStep]:
        url = provider.issuer.rstrip("/") + DOCUMENT_PATH
        try:
            document = json_of(await self._client.get(url))
        except UpstreamError as error:
            yield ConnectionStep("Discovery document", False, error.reason, "issuer")
            return
        yield ConnectionStep("Discovery document", True, url)
        issuer = clean_text(document.get("issuer"), 200)
        if issuer != provider.issuer:
            found = f"the provider calls itself {issuer or 'nothing'}: enter exactly that"
            yield ConnectionStep("Issuer", False, found, "issuer")
            return
        yield ConnectionStep("Issuer", True, "matches")
        try:
            metadata = parse_metadata(self._client, provider.issuer, document)
        except UpstreamError as error:
            yield ConnectionStep("Endpoints", False, error.reason, "issuer")
            return
        endpoints = [metadata.authorization_endpoint, metadata.token_endpoint, metadata.userinfo_endpoint]
        yield ConnectionStep("Endpoints", True, ", ".join(clean_text(one, 200) for one in endpoints if one))
        yield await keys_step(self._client, metadata.jwks_uri)
        yield await self._test_token_endpoint(
            metadata.token_endpoint, "issuer", provider, secret, attempt, metadata.auth_methods
        )

    async def _test_oauth2(
        self, provider: IdentityProvider, secret: str | None, attempt: Attempt
    ) -> AsyncGenerator[ConnectionStep]:
        yield await self._test_address("Authorization address", provider.authorization_url, "authorization_url")
        yield await self._test_token_endpoint(provider.token_url, "token_url", provider, secret, attempt, AUTH_METHODS)
        yield await self._test_address("Userinfo address", provider.userinfo_url, "userinfo_url")

    async def _test_steam(
        self, provider: IdentityProvider, _secret: str | None, _attempt: Attempt
    ) -> AsyncGenerator[ConnectionStep]:
        yield await self._test_address("Sign-in address", endpoint(provider), "issuer")

    async def _test_address(self, title: str, url: str, field: str) -> ConnectionStep:
        """An address that wants a user or a token refuses this request, which shows that there is one."""
        try:
            answer = await self._client.get(url)
        except UpstreamError as error:
            return ConnectionStep(title, False, error.reason, field)
        exists = answer.status not in (404, 410)
        return ConnectionStep(title, exists, f"answers with status {answer.status}", "" if exists else field)

    async def _test_token_endpoint(
        self,
        url: str,
        field: str,
        provider: IdentityProvider,
        secret: str | None,
        attempt: Attempt,
        auth_methods: tuple[str, ...],
    ) -> ConnectionStep:
        title = "Token endpoint"
        try:
            await redeem_code(self._client, url, provider, secret, attempt, NO_CODE, auth_methods)
        except TokenRefused as refused:
            if refused.error in _WRONG_CLIENT or refused.http_status == 401:
                found = f"does not accept the client id or secret ({refused.error or refused.http_status})"
                return ConnectionStep(title, False, found, "client_secret")
            if not refused.error:
                return ConnectionStep(
                    title, False, f"answers with status {refused.http_status} and no error code", field
                )
            return ConnectionStep(
                title, True, f"answers: it refuses the code of the test ({refused.error}), and not the client"
            )
        except UpstreamError as error:
            return ConnectionStep(title, False, error.reason, field)
        return ConnectionStep(title, False, "has accepted a code that does not exist", field)
