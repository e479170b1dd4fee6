"""Discovery documents and keys are cached; keys are read again for an unknown id, but not often."""

import pytest
from trio.testing import MockClock

from sso.core.net import parse_networks
from sso.core.receiver_addresses import ReceiverAddresses
from sso.upstream.discovery import REREAD_KEYS_S, Discovery
from sso.upstream.errors import InvalidAnswer, ProviderUnavailable
from sso.upstream.http_client import ProviderClient
from tests.upstream.stand_ins import CodeProvider


def client_of(networks: str, *, allow_http: bool = True) -> ProviderClient:
    return ProviderClient(None, ReceiverAddresses(parse_networks(networks), loopback=False), allow_http=allow_http)


async def test_requests_go_to_allowed_addresses_only(provider: CodeProvider) -> None:
    for url in (provider.url, provider.url.replace("127.0.0.1", "localhost")):
        with pytest.raises(ProviderUnavailable, match="not allowed; SSO_UPSTREAM_NETWORKS"):
            await Discovery(client_of("10.0.0.0/8")).metadata(url)
    assert provider.requests == []


async def test_unknown_key_id_lets_keys_be_read_again_at_most_once_a_minute(
    provider: CodeProvider, mock_clock: MockClock
) -> None:
    discovery = Discovery(client_of("127.0.0.0/8"))
    metadata = await discovery.metadata(provider.url)
    assert await discovery.find_key(metadata.jwks_uri, "k1")
    provider.kid = "k2"
    for _ in range(3):
        assert await discovery.find_key(metadata.jwks_uri, "k2") is None
    assert provider.requests.count("/jwks") == 1
    mock_clock.jump(REREAD_KEYS_S + 1)
    assert await discovery.find_key(metadata.jwks_uri, "k2")
    assert await discovery.find_key(metadata.jwks_uri, "k1") is None  # it was removed
    assert provider.requests.count("/jwks") == 2


async def test_token_without_key_id_means_the_only_key(provider: CodeProvider) -> None:
    discovery = Discovery(client_of("127.0.0.0/8"))
    assert await discovery.find_key((await discovery.metadata(provider.url)).jwks_uri, "")


async def test_discovery_document_is_read_once(provider: CodeProvider) -> None:
    discovery = Discovery(client_of("127.0.0.0/8"))
    assert await discovery.metadata(provider.url) is await discovery.metadata(provider.url)
    assert provider.requests == ["/.well-known/openid-configuration"]


async def test_failed_discovery_is_tried_again(provider: CodeProvider) -> None:
    discovery = Discovery(client_of("127.0.0.0/8"))
    provider.down = True
    with pytest.raises(ProviderUnavailable):
        await discovery.metadata(provider.url)
    provider.down = False
    assert (await discovery.metadata(provider.url)).jwks_uri == f"{provider.url}/jwks"


async def test_http_is_refused_while_the_base_url_is_https(provider: CodeProvider) -> None:
    with pytest.raises(InvalidAnswer, match="expected an https address"):
        await Discovery(client_of("127.0.0.0/8", allow_http=False)).metadata(provider.url)
    assert provider.requests == []


async def test_redirect_is_not_followed(provider: CodeProvider) -> None:
    client = client_of("127.0.0.0/8")
    url = f"{provider.url}/authorize?code_challenge_method=S256&state=s&redirect_uri={provider.url}/jwks"
    assert (await client.get(url)).status == 302
    assert provider.requests == ["/authorize"]
