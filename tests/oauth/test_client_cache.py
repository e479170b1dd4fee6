"""A cached client speeds up the redemption of a code, but a change of the client takes effect at once.

Every test runs with a cached client and with one that is not cached.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
import trio

from sso.core.errors import ApiError
from sso.db.batch.statement_batch import SLOW_BATCH_S
from sso.db.database import Database
from sso.oauth.clients.authentication import ClientCredentials, sha1_bearer
from sso.oauth.errors import InvalidClient, InvalidGrant
from sso.services import Services
from tests.kit.oauth import pkce
from tests.kit.operator_changes import disable_client, finish_rotation, rotate_secret
from tests.oauth.in_process import BEARER_ONLY, CREDENTIALS, SECRET, URI, apply_client, new_code, redeem

CONCURRENT = 50
OTHER_URI = "https://shop.example.com/elsewhere"
OTHER_SECRET = "another-secret-of-the-shop"
VERIFIER, CHALLENGE = pkce()
BODY_CREDENTIALS = ClientCredentials("shop", secrets=(SECRET,))
PUBLIC_CREDENTIALS = ClientCredentials("shop")
URI_REMOVED = "redirect_uri no longer belongs to the client"
URI_DIFFERS = "redirect_uri differs from the one of the authorization request"


def bearer(secret: str, uri: str = URI, client_id: str = "shop") -> ClientCredentials:
    return ClientCredentials(client_id, bearer=sha1_bearer(uri, secret).decode())


@dataclass
class Shop:
    services: Services
    cached: bool

    async def code(self, credentials: ClientCredentials = CREDENTIALS, verifier: str = "", **fields: Any) -> str:
        """Returns a new code. If the client shall be cached, it redeems another code first."""
        if self.cached:
            await self.redeem(await new_code(self.services, **fields), credentials, verifier=verifier)
        return await new_code(self.services, **fields)

    async def redeem(
        self, code: str, credentials: ClientCredentials = CREDENTIALS, *, uri: str = URI, verifier: str = ""
    ) -> dict[str, Any]:
        return await redeem(self.services, credentials, code, uri=uri, verifier=verifier)

    async def refused(
        self, code: str, credentials: ClientCredentials = CREDENTIALS, *, uri: str = URI, verifier: str = ""
    ) -> ApiError:
        with pytest.raises(ApiError) as caught:
            await self.redeem(code, credentials, uri=uri, verifier=verifier)
        return caught.value

    async def has_valid_token(self, tokens: dict[str, Any]) -> bool:
        return await self.services.oauth.token_store.find_access_token(tokens["access_token"]) is not None

    async def failures(self) -> list[int]:
        """Returns the failure counts of the codes that are not redeemed."""
        return [row[0] for row in await self.sql("SELECT failures FROM oauth_codes WHERE redeemed IS NULL")]

    async def sql(self, sql: str) -> list[Any]:
        """Runs SQL directly. A client changed in this way keeps its codes, as if they were issued during the change."""
        return await self.services.database.run_sql(sql, [])


@pytest.fixture(params=["cached", "not cached"])
def shop(services: Services, request: pytest.FixtureRequest) -> Shop:
    return Shop(services, request.param == "cached")


async def test_removed_secret_is_refused(shop: Shop) -> None:
    code = await shop.code()
    new = await rotate_secret(shop.services, "shop")
    assert new
    await finish_rotation(shop.services, "shop")
    assert isinstance(await shop.refused(code), InvalidClient)
    assert await shop.failures() == [1]
    assert await shop.redeem(code, bearer(new))


async def test_both_secrets_are_valid_during_a_rotation(shop: Shop) -> None:
    code = await shop.code()
    new = await rotate_secret(shop.services, "shop")
    assert new
    assert await shop.redeem(code)
    other = await new_code(shop.services, client_secret=None)
    assert await shop.redeem(other, bearer(new))


async def test_disabled_client_is_refused(shop: Shop) -> None:
    code = await shop.code()
    await disable_client(shop.services, "shop")
    assert isinstance(await shop.refused(code), InvalidClient)
    await disable_client(shop.services, "shop", disabled=False)
    assert isinstance(await shop.refused(code), InvalidGrant)


async def test_code_issued_while_its_client_was_disabled_is_refused(shop: Shop) -> None:
    code = await shop.code()
    await shop.sql("UPDATE oauth_clients SET disabled = true")
    assert isinstance(await shop.refused(code), InvalidClient)
    assert await shop.failures() == [1]


async def test_deleted_client_is_refused(shop: Shop) -> None:
    code = await shop.code()
    await shop.sql("DELETE FROM oauth_clients")
    assert isinstance(await shop.refused(code), InvalidClient)


@pytest.mark.parametrize(
    "addresses",
    [
        "redirect_hosts = '{game.example.com}'",
        "redirect_hosts = '{}'",
        f"redirect_uris = '{{{OTHER_URI}}}'",
        f"redirect_hosts = '{{}}', redirect_uris = '{{{OTHER_URI}}}'",
    ],
)
async def test_removed_redirect_uri_is_refused(shop: Shop, addresses: str) -> None:
    code = await shop.code()
    await shop.sql(f"UPDATE oauth_clients SET {addresses}")
    refused = await shop.refused(code)
    assert (type(refused), refused.message) == (InvalidGrant, URI_REMOVED)
    assert await shop.failures() == [0]


@pytest.mark.parametrize("uris", [[URI], [OTHER_URI, URI], [URI, 'https://shop.example.com/a?b=",é\\\\']])
async def test_redirect_uri_that_is_still_listed_is_accepted(shop: Shop, uris: list[str]) -> None:
    code = await shop.code()
    listed = ", ".join(f"E'{uri}'" for uri in uris)
    await shop.sql(f"UPDATE oauth_clients SET redirect_uris = ARRAY[{listed}]")
    assert await shop.redeem(code)
    assert await shop.redeem(await new_code(shop.services))


async def test_authentication_method_that_the_new_profile_forbids_is_refused(shop: Shop) -> None:
    code = await shop.code(BODY_CREDENTIALS, profile="oidc")
    await apply_client(shop.services, profile="strict")
    assert isinstance(await shop.refused(code, BODY_CREDENTIALS), InvalidClient)
    assert await shop.failures() == [1]
    assert await shop.redeem(code)


async def test_client_that_is_no_longer_public_must_send_its_secret(shop: Shop) -> None:
    public = {"client_secret": None, "public": True, "profile": "oidc", "challenge": CHALLENGE}
    code = await shop.code(PUBLIC_CREDENTIALS, VERIFIER, **public)
    await apply_client(shop.services, profile="oidc")
    assert isinstance(await shop.refused(code, PUBLIC_CREDENTIALS, verifier=VERIFIER), InvalidClient)
    assert await shop.failures() == [1]
    assert await shop.redeem(code, verifier=VERIFIER)


async def test_public_client_needs_only_client_id_and_verifier(shop: Shop) -> None:
    public = {"client_secret": None, "public": True, "profile": "oidc", "challenge": CHALLENGE}
    code = await shop.code(PUBLIC_CREDENTIALS, VERIFIER, **public)
    assert isinstance(await shop.refused(code, PUBLIC_CREDENTIALS, verifier=pkce()[0]), InvalidGrant)
    assert await shop.failures() == [1]
    assert await shop.redeem(code, PUBLIC_CREDENTIALS, verifier=VERIFIER)


async def test_code_of_another_client_is_refused(shop: Shop) -> None:
    """The other client is cached as well."""
    other: dict[str, Any] = {"client_id": "other", "client_secret": OTHER_SECRET}
    other_credentials = bearer(OTHER_SECRET, client_id="other")
    await shop.code()
    if shop.cached:
        await shop.redeem(await new_code(shop.services, **other), other_credentials)
    code = await new_code(shop.services, **other)
    await shop.sql("DELETE FROM oauth_codes WHERE client_id = 'shop'")
    assert isinstance(await shop.refused(code), InvalidGrant)
    assert await shop.failures() == [1]
    assert isinstance(await shop.refused(code, BEARER_ONLY), InvalidClient)
    assert await shop.failures() == [2]
    assert (await shop.redeem(code, other_credentials))["access_token"]


async def test_wrong_verifier_counts_as_one_failure(shop: Shop) -> None:
    for wrong in ("", pkce()[0], CHALLENGE, "short", VERIFIER + "=", VERIFIER + "é", "x" * 129):
        code = await shop.code(verifier=VERIFIER, challenge=CHALLENGE)
        assert isinstance(await shop.refused(code, verifier=wrong), InvalidGrant), wrong
        assert await shop.failures() == [1], wrong
        assert await shop.redeem(code, verifier=VERIFIER), wrong


async def test_verifier_without_challenge_counts_as_one_failure(shop: Shop) -> None:
    for verifier in (VERIFIER, "short"):
        code = await shop.code()
        assert isinstance(await shop.refused(code, verifier=verifier), InvalidGrant), verifier
        assert await shop.failures() == [1], verifier
        assert await shop.redeem(code), verifier


async def test_wrong_secret_counts_as_one_failure(shop: Shop) -> None:
    code = await shop.code()
    assert isinstance(await shop.refused(code, bearer("guess")), InvalidClient)
    assert await shop.failures() == [1]
    assert await shop.redeem(code)


async def test_another_redirect_uri_of_the_client_is_refused_without_counting(shop: Shop) -> None:
    code = await shop.code()
    refused = await shop.refused(code, bearer(SECRET, OTHER_URI), uri=OTHER_URI)
    assert (type(refused), refused.message) == (InvalidGrant, URI_DIFFERS)
    assert await shop.failures() == [0]
    assert await shop.redeem(code)


async def test_code_is_blocked_after_twenty_failures(shop: Shop) -> None:
    code = await shop.code()
    for _ in range(20):
        assert isinstance(await shop.refused(code, bearer("guess")), InvalidClient)
    assert isinstance(await shop.refused(code), InvalidGrant)
    assert await shop.failures() == [20]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE oauth_codes SET expires = now()",
        "UPDATE users SET disabled = true",
        "UPDATE users SET valid_from = 4000000000",
    ],
)
async def test_expired_or_revoked_code_is_refused(shop: Shop, sql: str) -> None:
    code = await shop.code()
    await shop.sql(sql)
    assert isinstance(await shop.refused(code), InvalidGrant)
    assert await shop.failures() == [0]


async def test_replay_revokes_the_grant_only_if_the_client_is_authenticated(shop: Shop) -> None:
    code = await shop.code()
    tokens = await shop.redeem(code)
    assert isinstance(await shop.refused(code, bearer("guess")), InvalidClient)
    assert isinstance(await shop.refused(code, verifier=VERIFIER), InvalidGrant)
    assert await shop.has_valid_token(tokens)
    assert isinstance(await shop.refused(code), InvalidGrant)
    assert not await shop.has_valid_token(tokens)


async def test_one_of_fifty_concurrent_redemptions_wins_and_the_others_revoke_its_grant(shop: Shop) -> None:
    code = await shop.code()
    won, lost = [], []

    async def one() -> None:
        try:
            won.append(await shop.redeem(code))
        except InvalidGrant as refused:
            lost.append(refused)

    async with trio.open_nursery() as nursery:
        for _ in range(CONCURRENT):
            nursery.start_soon(one)
    assert (len(won), len(lost)) == (1, CONCURRENT - 1)
    assert not await shop.has_valid_token(won[0])


async def test_of_fifty_concurrent_redemptions_only_an_authenticated_one_can_win(shop: Shop) -> None:
    """The requests share a statement with requests that fail authentication."""
    code = await shop.code(verifier=VERIFIER, challenge=CHALLENGE)
    won = []

    async def one(credentials: ClientCredentials, verifier: str) -> None:
        with suppress(InvalidGrant, InvalidClient):
            await shop.redeem(code, credentials, verifier=verifier)
            won.append((credentials, verifier))

    async with trio.open_nursery() as nursery:
        for number in range(CONCURRENT - 1):
            # Fewer than 20 fail, so the code is not blocked.
            nursery.start_soon(one, CREDENTIALS, pkce()[0] if number < 15 else VERIFIER)
        nursery.start_soon(one, bearer("guess"), VERIFIER)
    assert won == [(CREDENTIALS, VERIFIER)]


async def test_every_change_of_a_client_takes_effect_at_once(shop: Shop) -> None:
    for _ in range(3):
        code = await shop.code()
        await shop.sql("UPDATE oauth_clients SET redirect_hosts = '{game.example.com}'")
        assert (await shop.refused(code)).message == URI_REMOVED
        await shop.sql("UPDATE oauth_clients SET redirect_hosts = '{shop.example.com}'")
        await apply_client(shop.services, client_secret=OTHER_SECRET)
        assert isinstance(await shop.refused(code), InvalidClient)
        await apply_client(shop.services, client_secret=SECRET)
        assert isinstance(await shop.refused(code, bearer(OTHER_SECRET)), InvalidClient)
        await shop.sql("UPDATE oauth_clients SET disabled = true")
        assert isinstance(await shop.refused(code), InvalidClient)
        await shop.sql("UPDATE oauth_clients SET disabled = false")
        assert await shop.redeem(code)


Meanwhile = Callable[[Callable[[], Awaitable[Any]]], None]


@pytest.fixture
def meanwhile(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Makes a change just before the statement that redeems the code, when the client was already checked."""
    cross = Database._run_now

    def happens(change: Callable[[], Awaitable[Any]]) -> None:
        calls_left = 1 if shop.cached else 2

        async def counted_cross(self: Database, *arguments: Any, **options: Any) -> Any:
            nonlocal calls_left
            calls_left -= 1
            if calls_left == 0:
                await change()
            return await cross(self, *arguments, **options)

        monkeypatch.setattr(Database, "_run_now", counted_cross)

    return happens


async def test_secret_rotated_meanwhile_is_still_accepted(shop: Shop, meanwhile: Meanwhile) -> None:
    code = await shop.code()
    meanwhile(lambda: rotate_secret(shop.services, "shop"))
    assert await shop.redeem(code)


async def test_host_added_meanwhile_does_not_refuse_the_code(shop: Shop, meanwhile: Meanwhile) -> None:
    code = await shop.code()
    meanwhile(lambda: apply_client(shop.services, redirect_hosts=["game.example.com", "shop.example.com"]))
    assert await shop.redeem(code)


async def test_secret_replaced_meanwhile_is_refused(shop: Shop, meanwhile: Meanwhile) -> None:
    code = await shop.code()
    meanwhile(lambda: apply_client(shop.services, client_secret=OTHER_SECRET))
    assert isinstance(await shop.refused(code), InvalidClient)
    assert await shop.failures() == [1]


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("UPDATE oauth_clients SET disabled = true", InvalidClient),
        ("UPDATE oauth_clients SET secret_sealed = NULL", InvalidClient),
        ("UPDATE oauth_clients SET redirect_hosts = '{game.example.com}'", InvalidGrant),
        ("DELETE FROM oauth_codes", InvalidGrant),
        ("DELETE FROM oauth_clients", InvalidClient),
        ("UPDATE users SET disabled = true", InvalidGrant),
    ],
)
async def test_code_is_refused_if_its_client_or_user_changes_meanwhile(
    shop: Shop, meanwhile: Meanwhile, sql: str, error: type[ApiError]
) -> None:
    code = await shop.code()
    meanwhile(lambda: shop.sql(sql))
    assert isinstance(await shop.refused(code), error)
    assert len(await shop.sql("SELECT FROM oauth_grants")) <= shop.cached  # only the grant of the first code


async def test_code_redeemed_meanwhile_counts_as_replay(shop: Shop, meanwhile: Meanwhile) -> None:
    code = await shop.code()
    first: list[dict[str, Any]] = []

    async def redeem_first() -> None:
        await trio.sleep(2 * SLOW_BATCH_S)  # a second batch starts beside the waiting one only after this time
        first.append(await shop.redeem(code))

    meanwhile(redeem_first)
    assert isinstance(await shop.refused(code), InvalidGrant)
    assert not await shop.has_valid_token(first[0])
