"""Which credentials a request has, and whether they are those of the client, without a server."""

import base64
from typing import Any

import pytest

from sso.core.errors import ApiError
from sso.oauth.clients.authentication import (
    ClientCredentials,
    authenticate_client,
    bearer_token,
    client_credentials,
    sha1_bearer,
)
from sso.oauth.model import Client

URI = "https://shop.example.com/cb"
OLD, NEW = ("old-secret", "sealed old"), ("new-sécret", "sealed new")


def client(**fields: Any) -> Client:
    usual: dict[str, Any] = {
        "client_id": "shop",
        "name": "Shop",
        "redirect_hosts": (),
        "redirect_uris": (),
        "profile": "oidc",
        "id_alg": "",
        "consent": False,
        "first_party": False,
        "disabled": False,
        "secret_sealed": NEW[1],
        "second_sealed": OLD[1],
    }
    return Client(**usual | fields)


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


PUBLIC = client(secret_sealed=None, second_sealed=None)
BEARER = sha1_bearer(URI, NEW[0]).decode()


@pytest.mark.parametrize(
    ("header", "client_id", "secret", "expected"),
    [
        ("", "", "", ClientCredentials()),
        ("", "shop", "", ClientCredentials("shop")),
        ("", "shop", "s", ClientCredentials("shop", secrets=("s",))),
        ("  bEARER  abc= ", "shop", "", ClientCredentials("shop", bearer="abc=")),
        (basic("shop:s"), "", "", ClientCredentials("shop", secrets=("s",), scheme="Basic")),
        (basic("shop:a%2Bb"), "shop", "", ClientCredentials("shop", secrets=("a%2Bb", "a+b"), scheme="Basic")),
    ],
)
def test_credentials_are_read(header: str, client_id: str, secret: str, expected: ClientCredentials) -> None:
    assert client_credentials([header] if header else [], client_id, secret) == expected


@pytest.mark.parametrize(
    ("headers", "client_id", "secret", "status"),
    [
        (["Bearer a", "Bearer a"], "", "", 400),
        (["Bearer a"], "", "s", 400),
        (["Digest a"], "", "", 401),
        ([], "a shop", "", 401),
        ([basic("shop")], "", "", 401),
        ([basic("shop:")], "", "", 401),
        ([basic(":s")], "", "", 401),
        ([basic("shop:s")], "other", "", 401),
        (["Basic 4"], "", "", 401),
        (["Basic /w=="], "", "", 401),
    ],
)
def test_wrong_credentials_are_refused(headers: list[str], client_id: str, secret: str, status: int) -> None:
    with pytest.raises(ApiError) as caught:
        client_credentials(headers, client_id, secret)
    assert caught.value.status == status


def test_bearer_token_is_that_of_the_only_header() -> None:
    assert bearer_token(["Bearer abc "]) == "abc"
    assert [bearer_token(headers) for headers in ([], ["Basic abc"], ["Bearer a", "Bearer b"])] == ["", "", ""]


@pytest.mark.parametrize(
    ("credentials", "method"),
    [
        (ClientCredentials("shop", verified_keys="k"), "assertion"),
        (ClientCredentials("shop", bearer="b"), "bearer"),
        (ClientCredentials("shop", secrets=("s",), scheme="Basic"), "basic"),
        (ClientCredentials("shop", secrets=("s",)), "body"),
        (ClientCredentials("shop"), "none"),
    ],
)
def test_method_follows_from_the_credentials(credentials: ClientCredentials, method: str) -> None:
    assert credentials.method == method


IN_BODY = ClientCredentials("shop", secrets=(NEW[0],))
IN_HEADER = ClientCredentials("shop", secrets=("wrong", NEW[0]), scheme="Basic")
AS_BEARER = ClientCredentials(bearer=BEARER.upper())
ASSERTED = ClientCredentials("shop", verified_keys="keys")


@pytest.mark.parametrize(
    ("site", "credentials", "expected"),
    [
        (client(), IN_BODY, NEW[1]),
        (client(), IN_HEADER, NEW[1]),
        (client(), AS_BEARER, NEW[1]),
        (client(), ClientCredentials("shop", secrets=(OLD[0],)), OLD[1]),
        (client(), ClientCredentials("shop", secrets=("wrong",)), None),
        (client(), ClientCredentials("shop", bearer=sha1_bearer(URI, "wrong").decode()), None),
        (client(), ClientCredentials("shop"), None),
        (client(), ClientCredentials("other", secrets=(NEW[0],)), None),
        (client(disabled=True), IN_BODY, None),
        (client(profile="strict"), AS_BEARER, NEW[1]),
        (client(profile="strict"), IN_BODY, None),
        (client(token_endpoint_auth_method="client_secret_post"), IN_BODY, NEW[1]),
        (client(token_endpoint_auth_method="client_secret_post"), IN_HEADER, None),
        (client(token_endpoint_auth_method="client_secret_basic"), IN_HEADER, NEW[1]),
        (client(token_endpoint_auth_method="client_secret_basic"), AS_BEARER, None),
        (PUBLIC, ClientCredentials("shop"), ""),
        (PUBLIC, ClientCredentials(), None),
        (PUBLIC, IN_BODY, None),
        (client(token_endpoint_auth_method="private_key_jwt", jwks="keys"), ASSERTED, "keys"),
        (client(token_endpoint_auth_method="private_key_jwt", jwks="others"), ASSERTED, None),
        (client(token_endpoint_auth_method="private_key_jwt", jwks="keys"), IN_BODY, None),
    ],
)
def test_client_is_authenticated_by_its_method(
    site: Client, credentials: ClientCredentials, expected: str | None
) -> None:
    for secrets in ((NEW, OLD), (OLD, NEW)):
        assert authenticate_client(site, secrets, credentials, URI) == expected


def test_strict_client_may_use_other_methods_at_other_endpoints() -> None:
    methods = frozenset({"basic"})
    assert authenticate_client(client(profile="strict"), (NEW,), IN_HEADER, "", strict_methods=methods) == NEW[1]
    assert authenticate_client(client(profile="strict"), (NEW,), AS_BEARER, URI, strict_methods=methods) is None
