"""Clients that publish their keys at an address (jwks_uri)."""

from collections.abc import Iterator
from typing import Any

import pytest

from sso.core.keys import GENERATE, public_jwk
from tests.kit.client_assertions import KEYS, assertion, fields
from tests.kit.document_server import DocumentServer, document_server
from tests.kit.oauth import REVOKE, Browser, Site, new_site
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import Server, until

OTHER_KEY = GENERATE["ES256"]()


@pytest.fixture
def publisher() -> Iterator[DocumentServer]:
    with document_server() as documents:
        documents.publish(first=KEYS["ES256"])
        yield documents


def new_client(server: Server, publisher: DocumentServer, **changes: Any) -> Site:
    record = {"profile": "oidc", "token_endpoint_auth_method": "private_key_jwt", "jwks_uri": publisher.url, **changes}
    return new_site(server, public=True, **record)


def is_authenticated(site: Site, algorithm: str = "ES256", **changes: Any) -> bool:
    data = fields(assertion(site, algorithm, **changes), token="unknown")
    answer = site.http.post(REVOKE, data=data)
    assert answer.status_code in (200, 401), answer.text
    return answer.status_code == 200


def test_published_keys_authenticate(server: Server, browser: Browser, publisher: DocumentServer) -> None:
    site = new_client(server, publisher)
    assert until(lambda: is_authenticated(site, kid="first"))
    for _ in range(2):  # the second time, the client is cached
        answer = site.redeem(browser.code(site), headers={}, **fields(assertion(site, kid="first")))
        tokens = answer.json()
        assert site.refresh(tokens["refresh_token"], headers={}, **fields(assertion(site, kid="first"))).is_success
    assert not is_authenticated(site, kid="first", key=OTHER_KEY)
    assert not is_authenticated(site, kid="unknown")


def test_new_key_is_found_and_removed_key_no_longer_counts(server: Server, publisher: DocumentServer) -> None:
    site = new_client(server, publisher)
    assert until(lambda: is_authenticated(site, kid="first"))
    publisher.publish(second=OTHER_KEY)
    assert until(lambda: is_authenticated(site, kid="second", key=OTHER_KEY), seconds=60)
    assert not is_authenticated(site, kid="first")


def test_keys_of_other_kinds_are_ignored(server: Server, publisher: DocumentServer) -> None:
    publisher.publish(first=KEYS["ES256"], rsa=rsa_key())
    others = b'{"keys": [{"kty": "oct", "k": "AA"}, 5, {"kty": "EC", "crv": "P-521"}, {"kty": "RSA", "use": "enc"},'
    publisher.body = publisher.body.replace(b'{"keys": [', others)
    site = new_client(server, publisher)
    assert until(lambda: is_authenticated(site, kid="first"))
    assert not is_authenticated(site, "PS256", kid="rsa", key=rsa_key())  # the key names RS256


def test_address_and_stored_keys_replace_each_other(server: Server, publisher: DocumentServer) -> None:
    site = new_client(server, publisher)
    assert until(lambda: is_authenticated(site, kid="first"))
    other = {"keys": [{**_jwk(OTHER_KEY), "kid": "stored"}]}
    server.apply({"clients": [{"client_id": site.client_id, "jwks": other}]})
    assert is_authenticated(site, kid="stored", key=OTHER_KEY)
    assert not is_authenticated(site, kid="first")
    server.apply({"clients": [{"client_id": site.client_id, "jwks_uri": publisher.url}]})
    assert is_authenticated(site, kid="first")
    assert not is_authenticated(site, kid="stored", key=OTHER_KEY)


def _jwk(key: Any) -> dict[str, Any]:
    return public_jwk(key.public_key(), "")


def test_unreachable_address_fails_the_authentication(server: Server) -> None:
    with document_server(status=500) as broken:
        site = new_client(server, broken)
        assert not is_authenticated(site, kid="first")
        count = len(broken.requests)
        for _ in range(20):
            assert not is_authenticated(site, kid="first")
        # Two workers, once in ten seconds each. The machine may be slow, so this is generous.
        assert len(broken.requests) <= count + 15
