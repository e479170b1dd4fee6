"""The adapter of OpenID Connect, with a provider on a real socket: changed keys, and addresses that it vouches for."""

from urllib.parse import parse_qsl, urlsplit

import pytest
from trio.testing import MockClock

from sso.core.net import parse_networks
from sso.core.receiver_addresses import ReceiverAddresses
from sso.db.clock import DatabaseClock
from sso.upstream.discovery import REREAD_KEYS_S
from sso.upstream.errors import InvalidAnswer
from sso.upstream.http_client import ProviderClient
from sso.upstream.model import Attempt, IdentityProvider, UpstreamIdentity
from sso.upstream.openid_connect import OpenIdConnect
from tests.upstream.stand_ins import CLIENT_ID, SECRET, CodeProvider, Person


@pytest.fixture
def adapter() -> OpenIdConnect:
    addresses = ReceiverAddresses(parse_networks("127.0.0.0/8"), loopback=False)
    return OpenIdConnect(ProviderClient(None, addresses, allow_http=True), DatabaseClock())


async def identify(adapter: OpenIdConnect, stand_in: CodeProvider) -> UpstreamIdentity:
    provider = IdentityProvider(
        provider_id="elsewhere",
        kind="oidc",
        name="Elsewhere",
        issuer=stand_in.url,
        client_id=CLIENT_ID,
        secret_sealed=None,
        scopes=("openid",),
        authorization_url="",
        token_url="",
        userinfo_url="",
        claims={},
        position=0,
        trusted_email=True,
        trusted_second_factor=False,
        keep_tokens=False,
        disabled=False,
    )
    attempt = Attempt.new("a browser", "https://sso.example.com/callback", needs_new_login=False)
    request = dict(parse_qsl(urlsplit(await adapter.authorization_url(provider, attempt)).query))
    answer = {"code": stand_in.code(**request), "state": attempt.state, "iss": stand_in.url}
    return await adapter.identify(provider, SECRET, attempt, answer)


async def test_key_that_changed_under_its_id_is_read_again_at_most_once_a_minute(
    adapter: OpenIdConnect, provider: CodeProvider, mock_clock: MockClock
) -> None:
    assert (await identify(adapter, provider)).subject == provider.person.subject
    provider.key = CodeProvider().key
    with pytest.raises(InvalidAnswer, match="InvalidSignatureError"):
        await identify(adapter, provider)
    assert provider.requests.count("/jwks") == 1
    mock_clock.jump(REREAD_KEYS_S + 1)
    assert (await identify(adapter, provider)).subject == provider.person.subject
    assert provider.requests.count("/jwks") == 2


@pytest.mark.parametrize("claims", [{"email_verified": True}, {"email_verified": True, "name": "Ann"}])
async def test_id_token_does_not_vouch_for_the_address_of_the_userinfo(
    adapter: OpenIdConnect, provider: CodeProvider, claims: dict[str, object]
) -> None:
    provider.person = Person(email="victim@example.com", email_verified=False)
    provider.wrong_claims = claims
    identity = await identify(adapter, provider)
    assert (identity.email, identity.email_verified) == ("victim@example.com", False)


async def test_userinfo_does_not_vouch_for_the_address_of_the_id_token(
    adapter: OpenIdConnect, provider: CodeProvider
) -> None:
    provider.wrong_claims = {"email": "victim@example.com"}
    identity = await identify(adapter, provider)
    assert (identity.email, identity.email_verified) == ("victim@example.com", False)
