"""POST /proxy/api/login, over HTTP.

More than 300 lines, because one operation has many options.
"""

import itertools
import time
from collections.abc import Iterator
from typing import Any

import httpx
import jwt as pyjwt
import pyotp
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.kit.browser import query
from tests.kit.builders import PASSWORD, TOTP_SECRET
from tests.kit.game import public_text
from tests.kit.rsa_keys import rsa_key
from tests.kit.server import Server

_numbers = itertools.count(1)
LOGIN = "/proxy/api/login"


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def new_user(server: Server, **fields: Any) -> str:
    login = f"login{next(_numbers)}@example.com"
    server.save_accounts(users=[{"login": login, "password": PASSWORD, "nick": "Ann", **fields}])
    return login


@pytest.fixture(scope="module")
def login(server: Server) -> str:
    fields = {"tags": ["beta", "vip"], "country": "DE", "level": "7", "meta": {"geo": "DE", "registration": "web"}}
    return new_user(server, **fields)


def claims_of(token: str, client: httpx.Client) -> dict[str, Any]:
    keys = pyjwt.PyJWKSet.from_dict(client.get("/proxy/oauth/keys").json())
    key = keys[pyjwt.get_unverified_header(token)["kid"]]
    claims: dict[str, Any] = pyjwt.decode(token, key, algorithms=["RS256"])
    return claims


def test_login_returns_the_authentication_data(client: httpx.Client, login: str) -> None:
    answer = client.post(LOGIN, json={"login": login, "password": PASSWORD, "factor": "device-1"})
    assert answer.status_code == 200
    data = answer.json()
    assert set(data) == {
        "status", "auth", "country", "lang", "level", "nick", "sso_nick", "reg_time", "stoken", "tags", "token",
        "token_exp", "user_id", "jwt",
    }  # fmt: skip
    assert data["status"] == "OK"
    assert data["auth"] == "login"
    assert data["tags"] == "beta,vip"
    assert data["level"] == "7"
    assert data["country"] == "DE"
    assert data["nick"] == data["sso_nick"] == "Ann"
    assert data["token_exp"] == 2592000
    assert isinstance(data["user_id"], str)
    assert abs(int(data["reg_time"]) - time.time()) < 300
    assert answer.headers["Cache-Control"] == "no-store"


def test_form_body_is_accepted_like_json(client: httpx.Client, login: str) -> None:
    assert client.post(LOGIN, data={"login": login, "password": PASSWORD}).json()["status"] == "OK"


def test_login_is_case_insensitive(client: httpx.Client, login: str) -> None:
    assert client.post(LOGIN, json={"login": login.upper(), "password": PASSWORD}).status_code == 200


def test_meta_is_returned_only_with_meta_1(client: httpx.Client, login: str) -> None:
    with_meta = client.post(LOGIN, json={"login": login, "password": PASSWORD, "meta": "1"}).json()
    assert with_meta["meta"] == {"geo": "DE", "registration": "web"}
    assert "meta" not in client.post(LOGIN, json={"login": login, "password": PASSWORD, "meta": "0"}).json()


def test_user_jwt_claims(client: httpx.Client, server: Server, login: str) -> None:
    data = client.post(LOGIN, json={"login": login, "password": PASSWORD, "factor": "device-1"}).json()
    claims = claims_of(data["jwt"], client)
    assert set(claims) == {
        "typ", "iss", "sub", "uid", "iat", "exp", "kid", "jti", "nick", "auth", "auth_time", "fac", "sid",
    }  # fmt: skip
    assert claims["typ"] == "user_token"
    assert claims["iss"] == server.base_url
    assert claims["sub"] == claims["uid"] == data["user_id"]
    assert claims["exp"] - claims["iat"] == 3600
    assert claims["kid"] == pyjwt.get_unverified_header(data["jwt"])["kid"]
    assert claims["fac"] == "AyBN6S4R_IxSgTm-QZBlkg64Pb_xpGY7vqRVqm6XAr0"  # base64url of the factor's SHA-256


@pytest.mark.parametrize("fields", [{"factor": "d", "nojwt": "1"}, {}, {"factor": ""}])
def test_no_jwt_with_nojwt_or_without_a_factor(client: httpx.Client, login: str, fields: dict[str, str]) -> None:
    assert "jwt" not in client.post(LOGIN, json={"login": login, "password": PASSWORD, **fields}).json()


def test_jwt_contains_fixed_ip_and_fixed_ips(client: httpx.Client, login: str) -> None:
    fields = {"fixed_ip": "1", "fixed_ips[]": ["10.1.2.3/8", "192.168.7.7"], "factor": "d"}
    data = client.post(LOGIN, json={"login": login, "password": PASSWORD, **fields}).json()
    assert claims_of(data["jwt"], client)["ips"] == ["127.0.0.1/32", "10.0.0.0/8", "192.168.7.7/32"]


@pytest.mark.parametrize("name", ["fixed_ips", "fixed_ips[]"])
def test_fixed_ips_is_accepted_under_both_names_in_json_and_form(client: httpx.Client, login: str, name: str) -> None:
    fields = {"login": login, "password": PASSWORD, "factor": "d"}
    by_json = client.post(LOGIN, json={**fields, name: ["10.0.0.1"]}).json()
    by_form = client.post(LOGIN, data={**fields, name: "10.0.0.1"}).json()
    assert claims_of(by_json["jwt"], client)["ips"] == claims_of(by_form["jwt"], client)["ips"] == ["10.0.0.1/32"]


@pytest.mark.parametrize("network", ["8.8.8.8", "0.0.0.0/0", "127.0.0.1", "10.0.0.0/7", "::ffff:8.8.8.8", "x", 1, None])
def test_fixed_ips_must_be_private_networks(client: httpx.Client, login: str, network: object) -> None:
    answer = client.post(LOGIN, json={"login": login, "password": PASSWORD, "fixed_ips": [network]})
    assert answer.status_code == 400
    assert answer.json()["status"] == "ERROR"


def test_jwt_public_key_is_embedded_and_must_be_a_usable_key(client: httpx.Client, login: str) -> None:
    fields = {"login": login, "password": PASSWORD, "factor": "d"}
    assert client.post(LOGIN, json={**fields, "jwt_public_key": "AAAA"}).status_code == 400
    key = public_text(rsa_key())
    data = client.post(LOGIN, json={**fields, "jwt_public_key": key}).json()
    assert claims_of(data["jwt"], client)["pub"] == key
    short = public_text(rsa.generate_private_key(65537, 1024))
    assert client.post(LOGIN, json={**fields, "jwt_public_key": short}).status_code == 400


def test_token_and_stoken_replace_login_and_password(client: httpx.Client, login: str) -> None:
    first = client.post(LOGIN, json={"login": login, "password": PASSWORD}).json()
    for name in ("token", "stoken"):
        again = client.post(LOGIN, json={"token": first[name]}).json()
        assert again["status"] == "OK"
        assert again["auth"] == "token"
        assert again["user_id"] == first["user_id"]


def test_token_from_a_short_token_does_not_outlive_it(client: httpx.Client, login: str) -> None:
    first = client.post(LOGIN, json={"login": login, "password": PASSWORD}).json()
    again = client.post(LOGIN, json={"token": first["stoken"]}).json()
    assert again["token_exp"] <= 3600


def test_short_token_option_returns_one_token_of_five_minutes(client: httpx.Client, login: str) -> None:
    data = client.post(LOGIN, json={"login": login, "password": PASSWORD, "short_token": "1"}).json()
    assert data["stoken"] == ""
    assert data["token_exp"] == 300
    again = client.post(LOGIN, json={"token": data["token"]}).json()
    assert again["stoken"] == ""
    assert again["token_exp"] <= 300


def test_bound_token_works_only_from_its_address(server: Server, login: str) -> None:
    with server.client() as here:
        data = here.post(LOGIN, json={"login": login, "password": PASSWORD, "short_token": "1"}).json()
    elsewhere = httpx.HTTPTransport(local_address="127.0.0.2")
    with httpx.Client(base_url=server.base_url, transport=elsewhere, timeout=60) as client:
        assert client.post(LOGIN, json={"token": data["token"]}).status_code == 401


@pytest.mark.parametrize(
    "fields",
    [
        {"login": "{login}", "password": "wrong"},
        {"login": "nobody@example.com", "password": PASSWORD},
        {"token": "x" * 43},
        {"token": "ünïcode"},
    ],
)
def test_wrong_credentials_get_the_same_response(client: httpx.Client, login: str, fields: dict[str, str]) -> None:
    answer = client.post(LOGIN, json={name: value.format(login=login) for name, value in fields.items()})
    assert answer.status_code == 401
    assert answer.json() == {"status": "ERROR", "error": "invalid credentials"}


def test_disabled_user_gets_the_response_of_wrong_credentials(client: httpx.Client, server: Server) -> None:
    login = new_user(server)
    token = client.post(LOGIN, json={"login": login, "password": PASSWORD}).json()["token"]
    server.sso("user", "disable", login)
    for fields in ({"login": login, "password": PASSWORD}, {"token": token}):
        answer = client.post(LOGIN, json=fields)
        assert answer.status_code == 401
        assert answer.json() == {"status": "ERROR", "error": "invalid credentials"}
    server.sso("user", "enable", login)
    assert client.post(LOGIN, json={"token": token}).status_code == 401  # a revoked token stays revoked
    assert client.post(LOGIN, json={"login": login, "password": PASSWORD}).status_code == 200


def test_password_change_revokes_session_tokens(client: httpx.Client, server: Server) -> None:
    login = new_user(server)
    data = client.post(LOGIN, json={"login": login, "password": PASSWORD}).json()
    server.sso("user", "set-password", login, "--password-stdin", stdin="another one\n")
    assert client.post(LOGIN, json={"token": data["token"]}).status_code == 401
    assert client.post(LOGIN, json={"token": data["stoken"]}).status_code == 401
    assert client.post(LOGIN, json={"login": login, "password": PASSWORD}).status_code == 401
    assert client.post(LOGIN, json={"login": login, "password": "another one"}).status_code == 200


def test_otp_is_requested_only_after_the_correct_password(client: httpx.Client, server: Server) -> None:
    login = new_user(server, totp_secret=TOTP_SECRET)
    asked = client.post(LOGIN, json={"login": login, "password": PASSWORD})
    assert asked.status_code == 401
    assert asked.json() == {"status": "ERROR", "error": "otp required", "otp": ["totp"]}
    wrong = client.post(LOGIN, json={"login": login, "password": "wrong"})
    assert wrong.json() == {"status": "ERROR", "error": "invalid credentials"}


def test_totp_code_works_once(client: httpx.Client, server: Server) -> None:
    login = new_user(server, totp_secret=TOTP_SECRET)
    fields = {"login": login, "password": PASSWORD, "otp": pyotp.TOTP(TOTP_SECRET).now(), "factor": "d"}
    data = client.post(LOGIN, json=fields).json()
    assert data["auth"] == "otp"
    assert claims_of(data["jwt"], client)["auth"] == "otp"
    assert client.post(LOGIN, json=fields).status_code == 401


def test_wrong_code_is_rejected(client: httpx.Client, server: Server) -> None:
    login = new_user(server, totp_secret=TOTP_SECRET)
    for otp in ("000000", "12345", "1234567", "abcdef", "１２３４５６", "-12345"):
        query(server, "DELETE FROM throttle")  # ends the block of the account
        answer = client.post(LOGIN, json={"login": login, "password": PASSWORD, "otp": otp})
        assert answer.status_code == 401, otp
        assert answer.json()["error"] == "invalid credentials"


def test_email_code_is_sent_and_works_once(client: httpx.Client, server: Server) -> None:
    login = new_user(server, email_2fa=True)
    asked = client.post(LOGIN, json={"login": login, "password": PASSWORD})
    assert asked.json() == {"status": "ERROR", "error": "otp required", "otp": ["email"], "email_sent": True}
    again = client.post(LOGIN, json={"login": login, "password": PASSWORD}).json()
    assert (again["otp"], again["email_sent"]) == (["email"], False)
    assert 1 <= again["email_wait_s"] <= 60
    code = mailed_code(server, login)
    assert client.post(LOGIN, json={"login": login, "password": PASSWORD, "otp": code}).json()["auth"] == "otp"
    assert client.post(LOGIN, json={"login": login, "password": PASSWORD, "otp": code}).status_code == 401


def mailed_code(server: Server, login: str) -> str:
    import re

    from tests.kit.server import until

    def find_mail() -> str | None:
        for path in (server.folder / "data" / "mail").glob("*.eml"):
            text = path.read_text()
            if f"To: {login}" in text and (match := re.search(r"code is (\d{6})", text)):
                return match[1]
        return None

    code = until(find_mail)
    assert isinstance(code, str), "no mail came"
    return code


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"login": "a@example.com"},
        {"login": 5, "password": "x"},
        {"login": ["a"], "password": "x"},
        {"login": None, "password": "x"},
        {"login": "a@example.com", "password": True},
        {"login": "a@example.com", "password": "x", "nojwt": 1},
        {"login": "a@example.com", "password": "x", "nojwt": "true"},
        {"login": "a@example.com", "password": "x", "short_token": True},
        {"login": "a@example.com", "password": "x", "meta": ["1"]},
        {"login": "a@example.com", "password": "x", "app_id": 1.5},
        {"login": "a@example.com", "password": "x", "app_id": True},
        {"login": "a@example.com", "password": "x", "app_id": -1},
        {"login": "a" * 400, "password": "x"},
        {"login": "a@example.com", "password": "x" * 2000},
        {"login": "a@example.com", "password": "x", "fixed_ips": ["10.0.0.1"] * 65},
        {"login": "a@example.com", "password": "x", "fixed_ips": "10.0.0.1"},
    ],
)
def test_invalid_fields_get_400_with_a_json_error(client: httpx.Client, fields: dict[str, object]) -> None:
    answer = client.post(LOGIN, json=fields)
    assert answer.status_code == 400
    assert set(answer.json()) == {"status", "error"}
    assert answer.json()["status"] == "ERROR"


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b'"text"',
        b"12",
        b"{",
        b'{"login":"a","login":"b"}',
        b'{"login":NaN}',
        b'{"app_id":1e400}',
        b'{"app_id":18446744073709551616}',
        b'{"login":"\\u0000"}',
        b'{"login":"\\ud800"}',
        b'{"login":"\xff"}',
        b"\xef\xbb\xbf{}",
        b'{"a":' * 100 + b"1" + b"}" * 100,
        "{}".encode("utf-16"),
    ],
)
def test_malformed_json_gets_400(client: httpx.Client, body: bytes) -> None:
    answer = client.post(LOGIN, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["status"] == "ERROR"


def test_too_large_body_gets_413(client: httpx.Client) -> None:
    answer = client.post(LOGIN, content=b'{"login":"' + b"a" * 300_000 + b'"}')
    assert answer.status_code == 413
    assert answer.json()["status"] == "ERROR"


def test_unsupported_body_encoding_or_type_gets_415(client: httpx.Client) -> None:
    assert client.post(LOGIN, content=b"{}", headers={"Content-Encoding": "gzip"}).status_code == 415
    assert client.post(LOGIN, content=b"<a/>", headers={"Content-Type": "text/xml"}).status_code == 415


def test_other_methods_get_405_with_allow(client: httpx.Client) -> None:
    answer = client.get(LOGIN)
    assert answer.status_code == 405
    assert "POST" in answer.headers["Allow"]
    assert answer.json()["status"] == "ERROR"


def test_emoji_in_login_and_password_are_preserved(client: httpx.Client, server: Server) -> None:
    login = new_user(server, nick="Ann 🎮 Ünï")
    assert client.post(LOGIN, json={"login": login, "password": PASSWORD}).json()["nick"] == "Ann 🎮 Ünï"
