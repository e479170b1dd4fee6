"""Clients that publish their keys at an address (jwks_uri)."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from sso.core import fetched_documents
from sso.core.fetched_documents import FetchedDocuments
from sso.core.jwt import InvalidToken
from sso.core.keys import GENERATE, PrivateKey, public_jwk
from sso.core.outgoing_http import OutgoingClient, OutgoingLimits
from sso.core.receiver_addresses import ReceiverAddresses
from sso.oauth.clients.client_keys import ClientKeys
from tests.kit.client_assertions import KEYS, assertion, fields
from tests.kit.document_host import DocumentHost, document_host
from tests.kit.oauth import REVOKE, Browser, Site, new_site
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import Server, until

PATH = "/jwks.json"
OTHER_KEY = GENERATE["ES256"]()


@pytest.fixture
def host() -> Iterator[DocumentHost]:
    with document_host() as host:
        publish(host, first=KEYS["ES256"])
        yield host


def publish(host: DocumentHost, *others: Any, **keys: PrivateKey) -> None:
    """Publishes a JWK set with these keys by their kids."""
    jwks = [public_jwk(key.public_key(), kid) for kid, key in keys.items()]
    host.put(PATH, {"keys": [*others, *jwks]})


def new_client(server: Server, host: DocumentHost) -> Site:
    record = {"profile": "oidc", "token_endpoint_auth_method": "private_key_jwt", "jwks_uri": host.url(PATH)}
    return new_site(server, public=True, **record)


def is_authenticated(site: Site, algorithm: str = "ES256", **changes: Any) -> bool:
    data = fields(assertion(site, algorithm, **changes), token="unknown")
    answer = site.http.post(REVOKE, data=data)
    assert answer.status_code in (200, 401), answer.text
    return answer.status_code == 200


def test_published_keys_authenticate(server: Server, browser: Browser, host: DocumentHost) -> None:
    site = new_client(server, host)
    assert until(lambda: is_authenticated(site, kid="first"), seconds=90)
    for _ in range(2):  # the second time, the client is cached
        answer = site.redeem(browser.code(site), headers={}, **fields(assertion(site, kid="first")))
        tokens = answer.json()
        assert site.refresh(tokens["refresh_token"], headers={}, **fields(assertion(site, kid="first"))).is_success
    assert not is_authenticated(site, kid="first", key=OTHER_KEY)
    assert not is_authenticated(site, kid="unknown")


def test_new_key_is_found_and_removed_key_no_longer_counts(host: DocumentHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetched_documents, "RETRY_S", 0)
    outgoing = OutgoingClient(None, OutgoingLimits(60.0, 65536, 4), ReceiverAddresses((), loopback=True).allows)
    keys = ClientKeys(FetchedDocuments(outgoing, allow_http=True))
    client: Any = SimpleNamespace(client_id="shop", jwks="", jwks_uri=host.url(PATH))

    async def work() -> None:
        first = await keys.find(client, "first")
        assert await keys.find(client, "first") is first
        assert host.requests == [PATH]
        publish(host, second=OTHER_KEY)
        assert (await keys.find(client, "second")).algorithms == ("ES256",)
        with pytest.raises(InvalidToken):
            await keys.find(client, "first")
        host.put(PATH, b"", 500)
        assert await keys.find(client, "second")  # an outage

    trio.run(work)


def test_keys_of_other_kinds_are_ignored(server: Server, host: DocumentHost) -> None:
    others = {"kty": "oct", "k": "AA"}, 5, {"kty": "EC", "crv": "P-521"}, {"kty": "RSA", "use": "enc"}
    publish(host, *others, first=KEYS["ES256"], rsa=rsa_key())
    site = new_client(server, host)
    assert until(lambda: is_authenticated(site, kid="first"), seconds=90)
    assert not is_authenticated(site, "PS256", kid="rsa", key=rsa_key())  # the key names RS256


def test_address_and_stored_keys_replace_each_other(server: Server, host: DocumentHost) -> None:
    site = new_client(server, host)
    assert until(lambda: is_authenticated(site, kid="first"), seconds=90)
    other = {"keys": [{**_jwk(OTHER_KEY), "kid": "stored"}]}
    server.apply({"clients": [{"client_id": site.client_id, "jwks": other}]})
    assert is_authenticated(site, kid="stored", key=OTHER_KEY)
    assert not is_authenticated(site, kid="first")
    server.apply({"clients": [{"client_id": site.client_id, "jwks_uri": host.url(PATH)}]})
    assert is_authenticated(site, kid="first")
    assert not is_authenticated(site, kid="stored", key=OTHER_KEY)


def _jwk(key: Any) -> dict[str, Any]:
    return public_jwk(key.public_key(), "")


def test_unusable_answers_fail_the_authentication_and_cost_few_requests(server: Server, host: DocumentHost) -> None:
    target = host.put("/internal", {"keys": [_jwk(KEYS["ES256"])]})
    answers: list[tuple[Any, int, dict[str, str]]] = [
        (b"", 500, {}),
        (b"", 302, {"Location": target}),
        ({"keys": [_jwk(KEYS["ES256"])], "padding": "x" * 70_000}, 200, {}),
        ({"keys": 5}, 200, {}),
        (b"{", 200, {}),
    ]
    for number, (document, status, headers) in enumerate(answers):
        address = host.put(f"/broken{number}", document, status, **headers)
        site = new_client(server, host)
        server.apply({"clients": [{"client_id": site.client_id, "jwks_uri": address}]})
        for _ in range(10):
            assert not is_authenticated(site, kid=None)
        # Each of the workers asks once in half a minute, and the machine may be slow.
        assert host.requests.count(f"/broken{number}") < 10
    assert "/internal" not in host.requests
