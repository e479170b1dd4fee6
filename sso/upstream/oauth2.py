"""Providers of OAuth 2.0 that are not OpenID providers, such as Discord and GitHub.

The identity comes from a userinfo address. ``claims`` of the provider names its members: ``{"subject": "id"}``; dots
lead into nested objects.
"""

from collections.abc import Mapping
from typing import Any

from sso.upstream.authorization_code import (
    authorization_request,
    code_of,
    fetch_userinfo,
    kept_tokens,
    redeem_code,
)
from sso.upstream.errors import InvalidAnswer
from sso.upstream.http_client import ProviderClient
from sso.upstream.model import (
    MAX_NAME,
    MAX_SUBJECT,
    Attempt,
    IdentityProvider,
    UpstreamIdentity,
    clean_text,
    unchanged_address,
)

DEFAULT_CLAIMS = {"subject": "id", "name": "name", "email": "email", "email_verified": "email_verified"}
AUTH_METHODS = ("client_secret_post",)  # what every provider without a discovery document accepts


class OAuth2:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def authorization_url(self, provider: IdentityProvider, attempt: Attempt) -> str:
        return authorization_request(
            self._client.check_url(provider.authorization_url, "authorization_url"), provider, attempt
        )

    async def identify(
        self, provider: IdentityProvider, secret: str | None, attempt: Attempt, answer: Mapping[str, str]
    ) -> UpstreamIdentity:
        if provider.issuer and answer.get("iss", provider.issuer) != provider.issuer:
            raise InvalidAnswer("authorization response: wrong iss")
        code = code_of(answer)
        tokens = await redeem_code(self._client, provider.token_url, provider, secret, attempt, code, AUTH_METHODS)
        userinfo = await fetch_userinfo(self._client, provider.userinfo_url, tokens)
        return read_userinfo(provider, userinfo, kept_tokens(tokens))


def read_userinfo(
    provider: IdentityProvider, userinfo: Mapping[str, Any], tokens: Mapping[str, Any]
) -> UpstreamIdentity:
    names = {**DEFAULT_CLAIMS, **provider.claims}
    return UpstreamIdentity(
        subject=_subject(_member(userinfo, names["subject"])),
        name=clean_text(_member(userinfo, names["name"]), MAX_NAME),
        email=unchanged_address(_member(userinfo, names["email"])),
        email_verified=_member(userinfo, names["email_verified"]) is True,
        tokens=tokens,
    )


def _member(userinfo: Mapping[str, Any], path: str) -> object:
    value: object = userinfo
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _subject(value: object) -> str:
    """Returns the subject, which some providers send as a number."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_SUBJECT or not value.isprintable():
        raise InvalidAnswer("userinfo endpoint: expected a subject")
    return value
