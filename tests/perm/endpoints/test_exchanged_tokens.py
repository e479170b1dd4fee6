"""Tokens that a web site got in exchange for an access token, at permission endpoints."""

import base64
import hashlib

import pytest

from tests.kit.browser import query
from tests.perm.endpoints.authentication import REFUSED, bearer, post
from tests.perm.endpoints.conftest import FACTOR, ApiUser, Studio
from tests.perm.endpoints.tokens import ServiceKey, user_jwt


@pytest.fixture
def exchanged(studio: Studio, ann: ApiUser) -> dict[str, str]:
    """The claims of a token that was exchanged for an access token with a valid grant."""
    for statement in (
        """INSERT INTO oauth_clients (client_id, first_party) VALUES ('exchange-site', true)
        ON CONFLICT (client_id) DO UPDATE SET first_party = true""",
        f"""INSERT INTO oauth_grants (id, client_id, user_id, auth_time, issued, ends, last_used, expires)
        VALUES ('g{ann.user_id}', 'exchange-site', '{ann.user_id}', 0, 0, 9999999999, now(), now() + interval '1 day')
        ON CONFLICT DO NOTHING""",
        f"""INSERT INTO oauth_access_tokens (digest, grant_id, expires)
        VALUES ('\\x{ACCESS.hex()}', 'g{ann.user_id}', now() + interval '1 hour') ON CONFLICT DO NOTHING""",
    ):
        query(studio.server, statement)
    token_name = base64.urlsafe_b64encode(ACCESS).decode().rstrip("=")
    return {"typ": "exchanged_token", "auth": "openid", "jti": f"{token_name}.1"}


ACCESS = hashlib.sha256(b"access token").digest()


@pytest.mark.parametrize(
    "ended",
    [
        "DELETE FROM oauth_access_tokens WHERE grant_id = 'g{user_id}'",
        "UPDATE oauth_access_tokens SET expires = now() WHERE grant_id = 'g{user_id}'",
        "UPDATE oauth_clients SET first_party = false WHERE client_id = 'exchange-site'",
        "UPDATE oauth_clients SET disabled = true WHERE client_id = 'exchange-site'",
    ],
)
def test_exchanged_token_ends_with_its_access_token_or_the_trust_in_its_client(
    studio: Studio, ann: ApiUser, exchanged: dict[str, str], ended: str
) -> None:
    token = user_jwt(studio.server, ann.user_id, **exchanged)
    assert post(studio, bearer(token))[0] == 200
    query(studio.server, ended.format(user_id=ann.user_id))
    assert post(studio, bearer(token)) == REFUSED
    query(studio.server, "DELETE FROM oauth_grants WHERE id = $1", f"g{ann.user_id}")
    query(studio.server, "UPDATE oauth_clients SET disabled = false WHERE client_id = 'exchange-site'")


def test_exchanged_token_ends_with_its_grant(studio: Studio, ann: ApiUser, exchanged: dict[str, str]) -> None:
    token = user_jwt(studio.server, ann.user_id, **exchanged)
    assert post(studio, bearer(token))[0] == 200
    query(studio.server, "DELETE FROM oauth_grants WHERE id = $1", f"g{ann.user_id}")
    assert post(studio, bearer(token)) == REFUSED


def test_exchanged_token_with_a_factor_requires_the_factor_or_a_service_jwt(
    studio: Studio, ann: ApiUser, key: ServiceKey, app: int, exchanged: dict[str, str]
) -> None:
    token = user_jwt(studio.server, ann.user_id, **exchanged)
    assert post(studio, bearer(token))[0] == 200
    assert post(studio, bearer(token, "wrong")) == REFUSED
    assert post(studio, bearer(token, None, key.sign(studio.server, app)))[0] == 200


def test_exchanged_token_without_a_factor_requires_a_service_jwt(
    studio: Studio, ann: ApiUser, key: ServiceKey, app: int, exchanged: dict[str, str]
) -> None:
    token = user_jwt(studio.server, ann.user_id, None, **exchanged)
    for factor in (None, "", FACTOR, "None"):
        assert post(studio, bearer(token, factor)) == REFUSED
    service = key.sign(studio.server, app)
    assert post(studio, bearer(token, None, service))[0] == 403
    assert post(studio, bearer(token, None, service), "meta/data", action="get", data={})[0] == 200
