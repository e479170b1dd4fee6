"""Signing keys in the management API."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sso.settings import Settings
from tests.admin.conftest import Administrator, administrator
from tests.kit.browser import each_worker
from tests.kit.server import Server, until
from tests.perm.endpoints.conftest import Studio

pytestmark = pytest.mark.two_workers


@pytest.fixture(scope="module")
def keeper(studio: Studio) -> Administrator:
    return administrator(studio, "can_manage_keys")


def rotate(caller: Administrator) -> dict[str, Any]:
    """Adds a side key, which signs little."""
    response = caller.request("POST", "/signing-keys", json={"algorithm": "EdDSA", "side": True})
    assert response.status_code == 201, response.text
    key: dict[str, Any] = response.json()["data"]
    return key


def test_keys_are_listed_page_by_page_without_private_parts(keeper: Administrator) -> None:
    response = keeper.get("/signing-keys")
    keys = response.json()["data"]
    assert {(key["algorithm"], key["side"]) for key in keys if key["state"] == "signing"} >= {("RS256", False)}
    assert "PRIVATE" not in response.text
    assert "sealed" not in response.text
    first = keeper.get("/signing-keys", limit=1).json()
    second = keeper.get("/signing-keys", limit=200, after=first["next"]).json()
    assert [key["kid"] for key in first["data"] + second["data"]] == [key["kid"] for key in keys]


def test_new_key_is_published_by_every_worker_and_audited(
    server: Server, keeper: Administrator, root: Administrator
) -> None:
    key = rotate(keeper)
    assert (key["state"], key["algorithm"], key["retires"]) == ("waiting", "EdDSA", None)
    with each_worker(server) as workers:
        for worker in workers:
            until(lambda worker=worker: key["kid"] in worker.get("/proxy/oauth/keys").text)
    (entry,) = root.data("/audit", target=key["kid"])
    assert (entry["operation"], entry["user_id"], entry["after"]["kid"]) == (
        "signing_key.rotate",
        keeper.user_id,
        key["kid"],
    )


def test_replaced_key_of_refresh_tokens_is_published_as_long_as_a_grant_lasts(
    server: Server, keeper: Administrator
) -> None:
    """Clients of the profile fapi2 keep a refresh token as long as its grant."""
    replaced, _ = rotate(keeper), rotate(keeper)
    retires = datetime.fromisoformat(keeper.data(f"/signing-keys/{replaced['kid']}")["retires"])
    grant_max_s = Settings().grant_max_s
    assert "SSO_GRANT_MAX_S" not in server.settings
    assert retires > datetime.now(UTC) + timedelta(seconds=grant_max_s)


def test_replaced_key_is_retired_and_the_newest_is_not(
    server: Server, keeper: Administrator, root: Administrator
) -> None:
    replaced, newest = rotate(keeper), rotate(keeper)
    path = f"/signing-keys/{replaced['kid']}"
    read = keeper.get(path)
    assert read.json()["data"]["retires"] is not None
    assert keeper.request("DELETE", path, {"If-Match": '"x"'}).status_code == 412
    retired = keeper.request("DELETE", path, {"If-Match": keeper.get(path).headers["ETag"]})
    assert (retired.status_code, retired.json()["data"]["state"]) == (200, "retired")
    with each_worker(server) as workers:
        for worker in workers:
            until(lambda worker=worker: replaced["kid"] not in worker.get("/proxy/oauth/keys").text)
    again = keeper.request("DELETE", path)
    assert (again.status_code, again.json()["error"]) == (409, "the key is retired already")
    refused = keeper.request("DELETE", f"/signing-keys/{newest['kid']}")
    assert (refused.status_code, refused.json()["error"]) == (
        409,
        "this is the key that signs: rotate first, then retire it",
    )
    operations = [entry["operation"] for entry in root.data("/audit", target=replaced["kid"])]
    assert operations == ["signing_key.retire", "signing_key.rotate"]
    assert [entry["operation"] for entry in root.data("/audit", target=newest["kid"])] == ["signing_key.rotate"]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"algorithm": "HS256"}, "algorithm: must be 'RS256', 'ES256' or 'EdDSA'"),
        ({"side": True}, "side: needs the algorithm ES256 or EdDSA"),
        ({"side": 1}, "side: must be true or false"),
        ({"alg": "RS256"}, "alg: is unknown"),
    ],
)
def test_invalid_rotation_is_refused_with_the_field(keeper: Administrator, body: dict[str, Any], error: str) -> None:
    count = len(keeper.data("/signing-keys", limit=200))
    response = keeper.request("POST", "/signing-keys", json=body)
    assert (response.status_code, response.json()["error"]) == (400, error)
    assert len(keeper.data("/signing-keys", limit=200)) == count


def test_unknown_key_is_404(keeper: Administrator) -> None:
    assert keeper.get("/signing-keys/unknown").status_code == 404
    assert keeper.request("DELETE", "/signing-keys/unknown").status_code == 404
