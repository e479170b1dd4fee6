"""The claim on the tokens of a device is a lease: which tokens are valid if the answer of the first claim was lost."""

from dataclasses import replace
from typing import Any

import pytest
import trio

from sso.accounts.model import User
from sso.config import Settings
from sso.core.ids import secret_token
from sso.core.net import parse_address
from sso.db.database import Database
from sso.device.grant import AuthorizationPending, DeviceGrant
from sso.oauth.clients.authentication import ClientCredentials
from sso.oauth.errors import InvalidGrant
from sso.oauth.grant_types.token_endpoint import HeldAnswer
from sso.oauth.grant_types.token_request import TokenRequest
from sso.services import Services
from sso.state.apply import Applier
from sso.state.document import parse
from tests.kit.builders import add_user
from tests.kit.device import DEVICE_CODE

CLIENT = {
    "client_id": "tv",
    "profile": "oidc",
    "token_endpoint_auth_method": "none",
    "grant_types": [DEVICE_CODE, "refresh_token"],
}
CREDENTIALS = ClientCredentials("tv")


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, gsid_hold_s=1)


@pytest.fixture
async def grant(services: Services) -> DeviceGrant:
    await Applier(services.database, services.hasher, services.operations).apply(parse({"clients": [CLIENT]}))
    return services.device_login.grant


@pytest.fixture
async def user(services: Services) -> User:
    return await add_user(services)


@pytest.fixture
async def request_(services: Services, grant: DeviceGrant, user: User) -> TokenRequest:
    """The token request of a device that the user has confirmed."""
    scopes = ("openid", "offline_access")
    session = await services.device_login.sessions.create("tv", scopes, parse_address("192.0.2.1"))
    assert session is not None
    assert await services.game_login.sessions.confirm(session.gsid, user, auth_time=1_700_000_000, auth="login")
    return TokenRequest(grant_type=DEVICE_CODE, device_code=session.device_code)


async def let_lease_end(database: Database) -> None:
    await database.run_sql("UPDATE game_sessions SET claimed_until = now() WHERE claimed_until IS NOT NULL", [])


async def is_valid(services: Services, answer: HeldAnswer) -> bool:
    """Returns whether the tokens are valid. Access token and refresh token must be valid or void together."""
    access = await services.oauth.token_store.find_access_token(answer.tokens["access_token"]) is not None
    refresh = services.oauth.token_issuer.read_refresh_token(answer.tokens["refresh_token"])
    assert refresh is not None
    rows = await services.database.run_sql("SELECT id FROM oauth_grants WHERE id = $1", [refresh.grant_id])
    assert access == (len(rows) == 1)
    return access


async def test_lost_answer_is_repeated_with_new_tokens_and_the_first_ones_are_void(
    services: Services, grant: DeviceGrant, request_: TokenRequest
) -> None:
    first = await grant.respond(request_, CREDENTIALS)
    with pytest.raises(AuthorizationPending):  # the first answer may still be on its way
        await grant.respond(request_, CREDENTIALS)
    await let_lease_end(services.database)
    second = await grant.respond(request_, CREDENTIALS)
    assert [await is_valid(services, answer) for answer in (first, second)] == [False, True]
    await first.finish(True)  # too late
    await let_lease_end(services.database)
    third = await grant.respond(request_, CREDENTIALS)
    assert [await is_valid(services, answer) for answer in (first, second, third)] == [False, False, True]
    await third.finish(True)
    with pytest.raises(InvalidGrant):
        await grant.respond(request_, CREDENTIALS)
    assert await is_valid(services, third)


async def test_answer_that_could_not_be_written_ends_its_tokens_at_once(
    services: Services, grant: DeviceGrant, request_: TokenRequest
) -> None:
    first = await grant.respond(request_, CREDENTIALS)
    await first.finish(False)
    assert not await is_valid(services, first)
    second = await grant.respond(request_, CREDENTIALS)
    await second.finish(True)
    assert await is_valid(services, second)


async def test_late_worker_cannot_issue_tokens_after_its_claim_was_taken_over(
    services: Services, grant: DeviceGrant, request_: TokenRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer: Any = services.device_login.tokens
    issue = issuer.issue
    second: list[HeldAnswer] = []

    async def issue_late(*arguments: Any) -> dict[str, Any]:
        monkeypatch.setattr(issuer, "issue", issue)
        await let_lease_end(services.database)
        second.append(await grant.respond(request_, CREDENTIALS))
        tokens: dict[str, Any] = await issue(*arguments)
        return tokens

    monkeypatch.setattr(issuer, "issue", issue_late)
    with pytest.raises(AuthorizationPending):
        await grant.respond(request_, CREDENTIALS)
    assert await is_valid(services, second[0])
    assert len(await services.database.run_sql("SELECT id FROM oauth_grants", [])) == 1


async def test_request_of_a_cancelled_device_leaves_no_tokens(
    services: Services, grant: DeviceGrant, request_: TokenRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer: Any = services.device_login.tokens
    issue = issuer.issue

    async def issue_and_disconnect(*arguments: Any) -> dict[str, Any]:
        tokens: dict[str, Any] = await issue(*arguments)
        scope.cancel()
        await trio.lowlevel.checkpoint()
        return tokens

    with monkeypatch.context() as disconnecting, trio.CancelScope() as scope:
        disconnecting.setattr(issuer, "issue", issue_and_disconnect)
        await grant.respond(request_, CREDENTIALS)
    assert scope.cancelled_caught
    assert await services.database.run_sql("SELECT id FROM oauth_grants", []) == []
    assert await is_valid(services, await grant.respond(request_, CREDENTIALS))


async def test_user_who_was_revoked_between_claim_and_issue_gets_no_tokens(
    services: Services, grant: DeviceGrant, request_: TokenRequest, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer: Any = services.device_login.tokens
    issue = issuer.issue

    async def revoke_first(*arguments: Any) -> dict[str, Any]:
        await services.users.revoke_all(user.user_id)
        tokens: dict[str, Any] = await issue(*arguments)
        return tokens

    monkeypatch.setattr(issuer, "issue", revoke_first)
    with pytest.raises(Exception, match="refused") as refusal:
        await grant.respond(request_, CREDENTIALS)
    assert type(refusal.value).__name__ == "AccessDenied"
    assert await services.database.run_sql("SELECT id FROM oauth_grants", []) == []


async def test_wait_is_bounded_by_the_hold_time_of_polls(services: Services, grant: DeviceGrant) -> None:
    session = await services.device_login.sessions.create("tv", ("openid",), parse_address("192.0.2.1"))
    assert session is not None
    request = TokenRequest(grant_type=DEVICE_CODE, device_code=session.device_code, wait=10**9)
    began = trio.current_time()
    with pytest.raises(AuthorizationPending):
        await grant.respond(request, CREDENTIALS)
    assert 0.9 < trio.current_time() - began < 60


async def test_device_code_is_a_secret_of_its_session(services: Services, grant: DeviceGrant) -> None:
    session = await services.device_login.sessions.create("tv", ("openid",), parse_address("192.0.2.1"))
    assert session is not None
    (row,) = await services.database.run_sql("SELECT * FROM game_sessions", [])
    assert session.secret not in str(dict(row))
    wrong = TokenRequest(grant_type=DEVICE_CODE, device_code=f"{session.gsid}.{secret_token()}")
    with pytest.raises(InvalidGrant):
        await grant.respond(wrong, CREDENTIALS)
