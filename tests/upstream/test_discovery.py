"""Discovery documents and keys are cached; keys are read again for an unknown id, but not often."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from sso.core.net import parse_networks
from sso.core.receiver_addresses import ReceiverAddresses
from sso.db.clock import DatabaseClock
from sso.upstream.discovery import DOCUMENT_PATH, KEYS_S, METADATA_S, REREAD_KEYS_S, Discovery
from sso.upstream.errors import InvalidAnswer, ProviderUnavailable
from sso.upstream.http_client import ProviderAnswer, ProviderClient
from sso.upstream.provider_document import MAX_STALE_S, RETRY_S
from sso.upstream.tickets.game_center import CERTIFICATE_S, GameCenter
from tests.upstream.stand_ins import CodeProvider
from tests.upstream.stores import AppleStore


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


def test_deeply_nested_answer_is_refused() -> None:
    """It could not be stored."""
    answer = ProviderAnswer("https://idp.example/token", 200, b'{"scope":' + b"[" * 64 + b"]" * 64 + b"}")
    with pytest.raises(InvalidAnswer, match="expected a JSON object"):
        answer.json()


async def test_redirect_is_not_followed(provider: CodeProvider) -> None:
    client = client_of("127.0.0.0/8")
    url = f"{provider.url}/authorize?code_challenge_method=S256&state=s&redirect_uri={provider.url}/jwks"
    assert (await client.get(url)).status == 302
    assert provider.requests == ["/authorize"]


@dataclass
class HangingClient:
    """Asks a provider without a socket, for tests with another clock. While ``hangs`` is set, it gets no answer."""

    provider: CodeProvider | AppleStore
    hangs: bool = False
    urls: list[str] = field(default_factory=list)
    is_asked: trio.Event = field(default_factory=trio.Event)

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> ProviderAnswer:
        self.urls.append(url)
        if self.hangs:
            self.is_asked.set()
            await trio.sleep(8)
            raise ProviderUnavailable("no answer within 8 seconds")
        status, _, body = self.provider.respond(url.removeprefix(self.provider.url), {}, {}, {})
        return ProviderAnswer(url, status, body)

    def check_url(self, url: object, name: str) -> str:
        return str(url)


@pytest.fixture
async def hanging() -> HangingClient:
    return HangingClient(CodeProvider(url="https://id.example.com"))


async def while_another_reads(
    client: HangingClient, reader: Callable[[], Awaitable[Any]], call: Callable[[], Awaitable[Any]]
) -> Any:
    """Returns the result of ``call`` while the request of ``reader`` hangs, which ends only after it."""
    client.hangs = True
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reader)
        await client.is_asked.wait()
        result = await call()
        nursery.cancel_scope.cancel()
    client.hangs = False
    return result


async def test_callers_without_an_older_document_wait_for_one_request(
    hanging: HangingClient, autojump_clock: MockClock
) -> None:
    discovery = Discovery(cast(ProviderClient, hanging))
    hanging.hangs = True
    started = trio.current_time()

    async def fail() -> None:
        with pytest.raises(ProviderUnavailable):
            await discovery.find_key(f"{hanging.provider.url}/jwks", "k1")

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(fail)
    assert trio.current_time() - started == 8


async def test_old_keys_are_used_while_their_address_does_not_answer(
    hanging: HangingClient, autojump_clock: MockClock
) -> None:
    """The request of the first caller hangs. Callers with known keys do not wait for it."""
    discovery = Discovery(cast(ProviderClient, hanging))
    jwks_uri = f"{hanging.provider.url}/jwks"
    key = await discovery.find_key(jwks_uri, "k1")
    autojump_clock.jump(KEYS_S + 1)

    async def find() -> Any:
        started = trio.current_time()
        assert await discovery.find_key(jwks_uri, "k1") is key
        return trio.current_time() - started

    assert await while_another_reads(hanging, find, find) == 0
    hanging.hangs = True
    assert await find() == 8  # the caller that asks uses the old key in the end
    assert await find() == 0  # and the address is not asked again at once
    autojump_clock.jump(MAX_STALE_S)
    with pytest.raises(ProviderUnavailable, match="no answer"):
        await find()


async def test_unknown_key_ids_do_not_wait_for_an_address_that_does_not_answer(
    hanging: HangingClient, autojump_clock: MockClock
) -> None:
    """Otherwise, forged tokens would take all places for tickets of the provider."""
    discovery = Discovery(cast(ProviderClient, hanging))
    jwks_uri = f"{hanging.provider.url}/jwks"
    key = await discovery.find_key(jwks_uri, "k1")
    autojump_clock.jump(REREAD_KEYS_S + 1)

    async def find_unknown() -> None:
        with pytest.raises(ProviderUnavailable):
            await discovery.find_key(jwks_uri, "forged")

    async def find_both() -> float:
        started = trio.current_time()
        assert await discovery.find_key(jwks_uri, "k1") is key
        await find_unknown()
        return trio.current_time() - started

    assert await while_another_reads(hanging, find_unknown, find_both) < 8
    hanging.hangs = True
    await find_unknown()
    requests = len(hanging.urls)
    await find_unknown()
    assert len(hanging.urls) == requests
    hanging.hangs = False
    autojump_clock.jump(RETRY_S + 1)
    assert await discovery.find_key(jwks_uri, "forged") is None


async def test_old_discovery_document_is_used_while_its_address_does_not_answer(
    hanging: HangingClient, autojump_clock: MockClock
) -> None:
    discovery = Discovery(cast(ProviderClient, hanging))
    metadata = await discovery.metadata(hanging.provider.url)
    autojump_clock.jump(METADATA_S + 1)

    async def read() -> Any:
        return await discovery.metadata(hanging.provider.url)

    assert await while_another_reads(hanging, read, read) is metadata
    assert hanging.urls == [hanging.provider.url + DOCUMENT_PATH] * 2
    assert await read() == metadata  # it is read again
    assert len(hanging.urls) == 3


async def test_old_certificate_of_game_center_is_used_while_its_address_does_not_answer(
    autojump_clock: MockClock,
) -> None:
    client = HangingClient(AppleStore("https://static.gc.apple.com"))
    game_center = GameCenter(cast(ProviderClient, client), DatabaseClock())
    url = f"{client.provider.url}/public-key/gc-prod-10.cer"
    certificate = await game_center._certificate(url)
    autojump_clock.jump(CERTIFICATE_S + 1)

    async def read() -> Any:
        return await game_center._certificate(url)

    assert await while_another_reads(client, read, read) is certificate
    assert client.urls == [url] * 2
