"""A cached client speeds up the redemption of a code, but a change of the client takes effect at once.

Every test has a shop with a cached client and one with a client that is not cached.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import trio

from sso.core.encryption import MasterKey
from sso.core.errors import ApiError
from sso.db.batch.statement_batch import SLOW_BATCH_S
from sso.db.database import Database
from sso.keys.reseal import Reseal
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
    monkeypatch: pytest.MonkeyPatch

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

    async def compete(
        self, code: str, credentials: ClientCredentials, verifier: str, won: list[Any], lost: list[Any]
    ) -> None:
        """Adds the credentials, the verifier, and the tokens or the error to one of the lists."""
        try:
            won.append((credentials, verifier, await self.redeem(code, credentials, verifier=verifier)))
        except (InvalidGrant, InvalidClient) as error:
            lost.append((credentials, verifier, error))

    async def has_valid_token(self, tokens: dict[str, Any]) -> bool:
        return await self.services.oauth.token_store.find_access_token(tokens["access_token"]) is not None

    async def failures(self) -> list[int]:
        """Returns the failure counts of the codes that are not redeemed."""
        return [row[0] for row in await self.sql("SELECT failures FROM oauth_codes WHERE redeemed IS NULL")]

    async def sql(self, sql: str) -> list[Any]:
        """Runs SQL directly. A client changed in this way keeps its codes, as if they were issued during the change."""
        return await self.services.database.run_sql(sql, [])

    def meanwhile(self, change: Callable[[], Awaitable[Any]]) -> None:
        """Makes a change just before the statement that redeems the code, when the client was already checked."""
        run_now, calls_left = Database._run_now, 1 if self.cached else 2

        async def counted_run_now(database: Database, *arguments: Any, **options: Any) -> Any:
            nonlocal calls_left
            calls_left -= 1
            if calls_left == 0:
                await change()
            return await run_now(database, *arguments, **options)

        self.monkeypatch.setattr(Database, "_run_now", counted_run_now)


@dataclass
class Shops:
    services: Services
    monkeypatch: pytest.MonkeyPatch

    async def __aiter__(self) -> AsyncIterator[Shop]:
        """Yields a shop whose client is cached, and then one whose client is not. Each begins without a client."""
        for cached in (True, False):
            self.monkeypatch.undo()
            self.services.oauth.client_cache._clients.clear()
            await self.services.database.run_sql("DELETE FROM oauth_clients", [])  # with its codes and grants
            yield Shop(self.services, cached, self.monkeypatch)


@pytest.fixture
def shops(services: Services, monkeypatch: pytest.MonkeyPatch) -> Shops:
    return Shops(services, monkeypatch)


async def test_removed_secret_is_refused(shops: Shops) -> None:
    async for shop in shops:
        code = await shop.code()
        new = await rotate_secret(shop.services, "shop")
        assert new
        await finish_rotation(shop.services, "shop")
        assert isinstance(await shop.refused(code), InvalidClient)
        assert await shop.failures() == [1]
        assert await shop.redeem(code, bearer(new))


async def test_both_secrets_are_valid_during_a_rotation(shops: Shops) -> None:
    async for shop in shops:
        code = await shop.code()
        new = await rotate_secret(shop.services, "shop")
        assert new
        assert await shop.redeem(code)
        other = await new_code(shop.services, client_secret=None)
        assert await shop.redeem(other, bearer(new))


async def test_secret_is_accepted_after_its_master_key_was_replaced(shops: Shops) -> None:
    async for shop in shops:
        code, keyring = await shop.code(), shop.services.keyring
        keyring.keys = (MasterKey.generate(), *keyring.keys)
        await Reseal(shop.services.database, keyring).run()
        keyring.keys = keyring.keys[:1]
        shop.services.oauth.client_cache._store._decrypt.cache_clear()  # many other secrets were used
        assert await shop.redeem(code)
        assert await shop.redeem(await new_code(shop.services, client_secret=None))


async def test_disabled_client_is_refused(shops: Shops) -> None:
    async for shop in shops:
        code = await shop.code()
        await disable_client(shop.services, "shop")
        assert isinstance(await shop.refused(code), InvalidClient)
        await disable_client(shop.services, "shop", disabled=False)
        assert isinstance(await shop.refused(code), InvalidGrant)


async def test_code_issued_while_its_client_was_disabled_is_refused(shops: Shops) -> None:
    async for shop in shops:
        code = await shop.code()
        await shop.sql("UPDATE oauth_clients SET disabled = true")
        assert isinstance(await shop.refused(code), InvalidClient)
        assert await shop.failures() == [1]


async def test_deleted_client_is_refused(shops: Shops) -> None:
    async for shop in shops:
        code = await shop.code()
        await shop.sql("DELETE FROM oauth_clients")
        assert isinstance(await shop.refused(code), InvalidClient)


async def test_removed_redirect_uri_is_refused(shops: Shops) -> None:
    for addresses in (
        "redirect_hosts = '{game.example.com}'",
        "redirect_hosts = '{}'",
        f"redirect_uris = '{{{OTHER_URI}}}'",
        f"redirect_hosts = '{{}}', redirect_uris = '{{{OTHER_URI}}}'",
    ):
        async for shop in shops:
            code = await shop.code()
            await shop.sql(f"UPDATE oauth_clients SET {addresses}")
            refused = await shop.refused(code)
            assert (type(refused), refused.message) == (InvalidGrant, URI_REMOVED)
            assert await shop.failures() == [0]


async def test_redirect_uri_that_is_still_listed_is_accepted(shops: Shops) -> None:
    for uris in ([URI], [OTHER_URI, URI], [URI, 'https://shop.example.com/a?b=",é\\\\']):
        async for shop in shops:
            code = await shop.code()
            listed = ", ".join(f"E'{uri}'" for uri in uris)
            await shop.sql(f"UPDATE oauth_clients SET redirect_uris = ARRAY[{listed}]")
            assert await shop.redeem(code)
            assert await shop.redeem(await new_code(shop.services))


async def test_authentication_method_that_the_new_profile_forbids_is_refused(shops: Shops) -> None:
    async for shop in shops:
        code = await shop.code(BODY_CREDENTIALS, profile="oidc")
        await apply_client(shop.services, profile="strict")
        assert isinstance(await shop.refused(code, BODY_CREDENTIALS), InvalidClient)
        assert await shop.failures() == [1]
        assert await shop.redeem(code)


async def test_client_that_is_no_longer_public_must_send_its_secret(shops: Shops) -> None:
    async for shop in shops:
        public = {"client_secret": None, "public": True, "profile": "oidc", "challenge": CHALLENGE}
        code = await shop.code(PUBLIC_CREDENTIALS, VERIFIER, **public)
        await apply_client(shop.services, profile="oidc")
        assert isinstance(await shop.refused(code, PUBLIC_CREDENTIALS, verifier=VERIFIER), InvalidClient)
        assert await shop.failures() == [1]
        assert await shop.redeem(code, verifier=VERIFIER)


async def test_public_client_needs_only_client_id_and_verifier(shops: Shops) -> None:
    async for shop in shops:
        public = {"client_secret": None, "public": True, "profile": "oidc", "challenge": CHALLENGE}
        code = await shop.code(PUBLIC_CREDENTIALS, VERIFIER, **public)
        assert isinstance(await shop.refused(code, PUBLIC_CREDENTIALS, verifier=pkce()[0]), InvalidGrant)
        assert await shop.failures() == [1]
        assert await shop.redeem(code, PUBLIC_CREDENTIALS, verifier=VERIFIER)


async def test_code_of_another_client_is_refused(shops: Shops) -> None:
    """The other client is cached as well."""
    async for shop in shops:
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


async def test_wrong_verifier_counts_as_one_failure(shops: Shops) -> None:
    async for shop in shops:
        code = await shop.code(verifier=VERIFIER, challenge=CHALLENGE)
        wrong = ("", pkce()[0], CHALLENGE, "short", VERIFIER + "=", VERIFIER + "é", "x" * 129)
        for failures, verifier in enumerate(wrong, 1):
            assert isinstance(await shop.refused(code, verifier=verifier), InvalidGrant), verifier
            assert await shop.failures() == [failures], verifier
        assert await shop.redeem(code, verifier=VERIFIER)


async def test_verifier_without_challenge_counts_as_one_failure(shops: Shops) -> None:
    async for shop in shops:
        code = await shop.code()
        for failures, verifier in enumerate((VERIFIER, "short"), 1):
            assert isinstance(await shop.refused(code, verifier=verifier), InvalidGrant), verifier
            assert await shop.failures() == [failures], verifier
        assert await shop.redeem(code)


async def test_wrong_secret_counts_as_one_failure(shops: Shops) -> None:
    async for shop in shops:
        code = await shop.code()
        assert isinstance(await shop.refused(code, bearer("guess")), InvalidClient)
        assert await shop.failures() == [1]
        assert await shop.redeem(code)


async def test_another_redirect_uri_of_the_client_is_refused_without_counting(shops: Shops) -> None:
    async for shop in shops:
        code = await shop.code()
        refused = await shop.refused(code, bearer(SECRET, OTHER_URI), uri=OTHER_URI)
        assert (type(refused), refused.message) == (InvalidGrant, URI_DIFFERS)
        assert await shop.failures() == [0]
        assert await shop.redeem(code)


async def test_code_is_blocked_after_twenty_failures(shops: Shops) -> None:
    async for shop in shops:
        code = await shop.code()
        for _ in range(20):
            assert isinstance(await shop.refused(code, bearer("guess")), InvalidClient)
        assert isinstance(await shop.refused(code), InvalidGrant)
        assert await shop.failures() == [20]


async def test_expired_or_revoked_code_is_refused(shops: Shops) -> None:
    for sql in (
        "UPDATE oauth_codes SET expires = now()",
        "UPDATE users SET disabled = true",
        "UPDATE users SET valid_from = 4000000000",
    ):
        async for shop in shops:
            code = await shop.code()
            await shop.sql(sql)
            assert isinstance(await shop.refused(code), InvalidGrant)
            assert await shop.failures() == [0]


async def test_replay_revokes_the_grant_only_if_the_client_is_authenticated(shops: Shops) -> None:
    async for shop in shops:
        code = await shop.code()
        tokens = await shop.redeem(code)
        assert isinstance(await shop.refused(code, bearer("guess")), InvalidClient)
        assert isinstance(await shop.refused(code, verifier=VERIFIER), InvalidGrant)
        assert await shop.has_valid_token(tokens)
        assert isinstance(await shop.refused(code), InvalidGrant)
        assert not await shop.has_valid_token(tokens)


async def test_one_of_fifty_concurrent_redemptions_wins_and_the_others_revoke_its_grant(shops: Shops) -> None:
    async for shop in shops:
        code = await shop.code()
        won: list[Any] = []
        lost: list[Any] = []
        async with trio.open_nursery() as nursery:
            for _ in range(CONCURRENT):
                nursery.start_soon(shop.compete, code, CREDENTIALS, "", won, lost)
        assert (len(won), {type(error) for _, _, error in lost}) == (1, {InvalidGrant})
        assert not await shop.has_valid_token(won[0][2]), [str(error) for _, _, error in lost]


async def test_of_fifty_concurrent_redemptions_only_an_authenticated_one_can_win(shops: Shops) -> None:
    """The requests share a statement with requests that fail authentication."""
    async for shop in shops:
        code = await shop.code(verifier=VERIFIER, challenge=CHALLENGE)
        won: list[Any] = []
        async with trio.open_nursery() as nursery:
            for number in range(CONCURRENT - 1):
                # Fewer than 20 fail, so the code is not blocked.
                verifier = pkce()[0] if number < 15 else VERIFIER
                nursery.start_soon(shop.compete, code, CREDENTIALS, verifier, won, [])
            nursery.start_soon(shop.compete, code, bearer("guess"), VERIFIER, won, [])
        assert [(credentials, verifier) for credentials, verifier, _ in won] == [(CREDENTIALS, VERIFIER)]


async def test_every_change_of_a_client_takes_effect_at_once(shops: Shops) -> None:
    async for shop in shops:
        for _ in range(2):
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


async def test_secret_rotated_meanwhile_is_still_accepted(shops: Shops) -> None:
    async for shop in shops:
        code = await shop.code()
        shop.meanwhile(partial(rotate_secret, shop.services, "shop"))
        assert await shop.redeem(code)


async def test_host_added_meanwhile_does_not_refuse_the_code(shops: Shops) -> None:
    async for shop in shops:
        code = await shop.code()
        hosts = ["game.example.com", "shop.example.com"]
        shop.meanwhile(partial(apply_client, shop.services, redirect_hosts=hosts))
        assert await shop.redeem(code)


async def test_secret_replaced_meanwhile_is_refused(shops: Shops) -> None:
    async for shop in shops:
        code = await shop.code()
        shop.meanwhile(partial(apply_client, shop.services, client_secret=OTHER_SECRET))
        assert isinstance(await shop.refused(code), InvalidClient)
        assert await shop.failures() == [1]


async def test_code_is_refused_if_its_client_or_user_changes_meanwhile(shops: Shops) -> None:
    for sql, error in (
        ("UPDATE oauth_clients SET disabled = true", InvalidClient),
        ("UPDATE oauth_clients SET secret_sealed = NULL", InvalidClient),
        ("UPDATE oauth_clients SET redirect_hosts = '{game.example.com}'", InvalidGrant),
        ("DELETE FROM oauth_codes", InvalidGrant),
        ("DELETE FROM oauth_clients", InvalidClient),
        ("UPDATE users SET disabled = true", InvalidGrant),
    ):
        async for shop in shops:
            code = await shop.code()
            shop.meanwhile(partial(shop.sql, sql))
            assert isinstance(await shop.refused(code), error)
            assert len(await shop.sql("SELECT FROM oauth_grants")) <= shop.cached  # only the grant of the first code


async def redeem_first(shop: Shop, code: str, tokens: list[dict[str, Any]]) -> None:
    await trio.sleep(2 * SLOW_BATCH_S)  # a second batch starts beside the waiting one only after this time
    tokens.append(await shop.redeem(code))


async def test_code_redeemed_meanwhile_counts_as_replay(shops: Shops) -> None:
    async for shop in shops:
        code = await shop.code()
        tokens: list[dict[str, Any]] = []
        shop.meanwhile(partial(redeem_first, shop, code, tokens))
        assert isinstance(await shop.refused(code), InvalidGrant)
        assert not await shop.has_valid_token(tokens[0])
