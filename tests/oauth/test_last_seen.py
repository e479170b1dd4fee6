"""A code is redeemed by who its client was when last seen, but what has changed since counts at once.

Each with a client that was seen before, and with one that never was.
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
from sso.oauth.client_auth import ClientCredentials, sha1_bearer
from sso.oauth.errors import InvalidClient, InvalidGrant
from sso.services import Services
from tests.kit.oauth import pkce
from tests.oauth.shop import GIVEN, NAMED, SECRET, URI, change, new_code, redeem

AT_ONCE = 50
ELSEWHERE = "https://shop.example.com/elsewhere"
OTHER_SECRET = "another-secret-of-theirs"
VERIFIER, CHALLENGE = pkce()
BODY = ClientCredentials("shop", secrets=(SECRET,))
NOBODY = ClientCredentials("shop")
GONE = "redirect_uri no longer belongs to the client"
NOT_THE_ONE = "redirect_uri differs from the one of the authorization request"


def bearer(secret: str, uri: str = URI, client_id: str = "shop") -> ClientCredentials:
    return ClientCredentials(client_id, bearer=sha1_bearer(uri, secret).decode())


@dataclass
class Shop:
    services: Services
    seen: bool

    async def code(self, given: ClientCredentials = NAMED, verifier: str = "", **fields: Any) -> str:
        """A code of the shop, which has redeemed one before if it was seen."""
        if self.seen:
            await self.redeem(await new_code(self.services, **fields), given, verifier=verifier)
        return await new_code(self.services, **fields)

    async def redeem(
        self, code: str, given: ClientCredentials = NAMED, *, uri: str = URI, verifier: str = ""
    ) -> dict[str, Any]:
        return await redeem(self.services, given, code, uri=uri, verifier=verifier)

    async def refused(
        self, code: str, given: ClientCredentials = NAMED, *, uri: str = URI, verifier: str = ""
    ) -> ApiError:
        with pytest.raises(ApiError) as caught:
            await self.redeem(code, given, uri=uri, verifier=verifier)
        return caught.value

    async def is_good(self, tokens: dict[str, Any]) -> bool:
        return await self.services.oauth.token_store.find_access_token(tokens["access_token"]) is not None

    async def failures(self) -> list[int]:
        """Of the codes that nobody has redeemed yet."""
        return [row[0] for row in await self.sql("SELECT failures FROM oauth_codes WHERE redeemed IS NULL")]

    async def sql(self, sql: str) -> list[Any]:
        """Also for what changes a client behind the back of a code that is being made."""
        return await self.services.database.run_sql(sql, [])


@pytest.fixture(params=["seen", "never seen"])
def shop(services: Services, request: pytest.FixtureRequest) -> Shop:
    return Shop(services, request.param == "seen")


async def test_a_secret_that_was_rotated_away_is_refused(shop: Shop) -> None:
    code = await shop.code()
    new = await shop.services.oauth.clients.rotate_secret("shop")
    assert new
    await shop.services.oauth.clients.finish_rotation("shop")
    assert isinstance(await shop.refused(code), InvalidClient)
    assert await shop.failures() == [1]
    assert await shop.redeem(code, bearer(new))


async def test_both_secrets_are_good_while_they_rotate(shop: Shop) -> None:
    code = await shop.code()
    new = await shop.services.oauth.clients.rotate_secret("shop")
    assert new
    assert await shop.redeem(code)
    other = await new_code(shop.services, client_secret=None)
    assert await shop.redeem(other, bearer(new))


async def test_a_client_that_was_disabled_is_refused(shop: Shop) -> None:
    code = await shop.code()
    await shop.services.oauth.clients.set_disabled("shop", True)
    assert isinstance(await shop.refused(code), InvalidClient)
    await shop.services.oauth.clients.set_disabled("shop", False)
    assert isinstance(await shop.refused(code), InvalidGrant)


async def test_a_code_that_slipped_in_while_its_client_was_disabled_is_refused(shop: Shop) -> None:
    code = await shop.code()
    await shop.sql("UPDATE oauth_clients SET disabled = true")
    assert isinstance(await shop.refused(code), InvalidClient)
    assert await shop.failures() == [1]


async def test_a_client_that_was_deleted_is_refused(shop: Shop) -> None:
    code = await shop.code()
    await shop.sql("DELETE FROM oauth_clients")
    assert isinstance(await shop.refused(code), InvalidClient)


@pytest.mark.parametrize(
    "addresses",
    [
        "redirect_hosts = '{game.example.com}'",
        "redirect_hosts = '{}'",
        f"redirect_uris = '{{{ELSEWHERE}}}'",
        f"redirect_hosts = '{{}}', redirect_uris = '{{{ELSEWHERE}}}'",
    ],
)
async def test_an_address_that_was_taken_away_is_refused(shop: Shop, addresses: str) -> None:
    code = await shop.code()
    await shop.sql(f"UPDATE oauth_clients SET {addresses}")
    refused = await shop.refused(code)
    assert (type(refused), refused.message) == (InvalidGrant, GONE)
    assert await shop.failures() == [0]


@pytest.mark.parametrize("uris", [[URI], [ELSEWHERE, URI], [URI, 'https://shop.example.com/a?b=",é\\\\']])
async def test_an_address_that_is_still_theirs_is_as_good_as_before(shop: Shop, uris: list[str]) -> None:
    code = await shop.code()
    listed = ", ".join(f"E'{uri}'" for uri in uris)
    await shop.sql(f"UPDATE oauth_clients SET redirect_uris = ARRAY[{listed}]")
    assert await shop.redeem(code)
    assert await shop.redeem(await new_code(shop.services))


async def test_a_way_of_authentication_that_was_taken_away_is_refused(shop: Shop) -> None:
    code = await shop.code(BODY, profile="oidc")
    await change(shop.services, profile="strict")
    assert isinstance(await shop.refused(code, BODY), InvalidClient)
    assert await shop.failures() == [1]
    assert await shop.redeem(code)


async def test_a_client_that_has_a_secret_now_must_prove_it(shop: Shop) -> None:
    public = {"client_secret": None, "public": True, "profile": "oidc", "challenge": CHALLENGE}
    code = await shop.code(NOBODY, VERIFIER, **public)
    await change(shop.services, profile="oidc")
    assert isinstance(await shop.refused(code, NOBODY, verifier=VERIFIER), InvalidClient)
    assert await shop.failures() == [1]
    assert await shop.redeem(code, verifier=VERIFIER)


async def test_a_public_client_proves_itself_by_the_verifier_alone(shop: Shop) -> None:
    public = {"client_secret": None, "public": True, "profile": "oidc", "challenge": CHALLENGE}
    code = await shop.code(NOBODY, VERIFIER, **public)
    assert isinstance(await shop.refused(code, NOBODY, verifier=pkce()[0]), InvalidGrant)
    assert await shop.failures() == [1]
    assert await shop.redeem(code, NOBODY, verifier=VERIFIER)


async def test_the_code_of_another_client_is_refused(shop: Shop) -> None:
    """Which was seen before too."""
    other = {"client_id": "other", "client_secret": OTHER_SECRET}
    theirs = bearer(OTHER_SECRET, client_id="other")
    await shop.code()
    if shop.seen:
        await shop.redeem(await new_code(shop.services, **other), theirs)
    code = await new_code(shop.services, **other)
    await shop.sql("DELETE FROM oauth_codes WHERE client_id = 'shop'")
    assert isinstance(await shop.refused(code), InvalidGrant)
    assert await shop.failures() == [1]
    assert isinstance(await shop.refused(code, GIVEN), InvalidClient)
    assert await shop.failures() == [2]
    assert (await shop.redeem(code, theirs))["access_token"]


@pytest.mark.parametrize("wrong", ["", pkce()[0], CHALLENGE, "short", VERIFIER + "=", VERIFIER + "é", "x" * 129])
async def test_a_wrong_verifier_counts_as_one_failure(shop: Shop, wrong: str) -> None:
    code = await shop.code(verifier=VERIFIER, challenge=CHALLENGE)
    assert isinstance(await shop.refused(code, verifier=wrong), InvalidGrant)
    assert await shop.failures() == [1]
    assert await shop.redeem(code, verifier=VERIFIER)


@pytest.mark.parametrize("verifier", [VERIFIER, "short"])
async def test_a_verifier_that_nobody_announced_counts_as_one_failure(shop: Shop, verifier: str) -> None:
    code = await shop.code()
    assert isinstance(await shop.refused(code, verifier=verifier), InvalidGrant)
    assert await shop.failures() == [1]
    assert await shop.redeem(code)


async def test_a_wrong_secret_counts_as_one_failure(shop: Shop) -> None:
    code = await shop.code()
    assert isinstance(await shop.refused(code, bearer("guess")), InvalidClient)
    assert await shop.failures() == [1]
    assert await shop.redeem(code)


async def test_another_address_of_the_client_is_refused_and_counts_as_nothing(shop: Shop) -> None:
    code = await shop.code()
    refused = await shop.refused(code, bearer(SECRET, ELSEWHERE), uri=ELSEWHERE)
    assert (type(refused), refused.message) == (InvalidGrant, NOT_THE_ONE)
    assert await shop.failures() == [0]
    assert await shop.redeem(code)


async def test_a_code_is_burnt_by_twenty_failures(shop: Shop) -> None:
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
async def test_a_code_that_is_worth_nothing_any_more_is_refused(shop: Shop, sql: str) -> None:
    code = await shop.code()
    await shop.sql(sql)
    assert isinstance(await shop.refused(code), InvalidGrant)
    assert await shop.failures() == [0]


async def test_a_replay_ends_what_the_code_gave_and_one_by_somebody_else_does_not(shop: Shop) -> None:
    code = await shop.code()
    tokens = await shop.redeem(code)
    assert isinstance(await shop.refused(code, bearer("guess")), InvalidClient)
    assert isinstance(await shop.refused(code, verifier=VERIFIER), InvalidGrant)
    assert await shop.is_good(tokens)
    assert isinstance(await shop.refused(code), InvalidGrant)
    assert not await shop.is_good(tokens)


async def test_one_of_fifty_redemptions_at_once_wins_and_the_others_end_what_it_got(shop: Shop) -> None:
    code = await shop.code()
    won, lost = [], []

    async def one() -> None:
        try:
            won.append(await shop.redeem(code))
        except InvalidGrant as refused:
            lost.append(refused)

    async with trio.open_nursery() as nursery:
        for _ in range(AT_ONCE):
            nursery.start_soon(one)
    assert (len(won), len(lost)) == (1, AT_ONCE - 1)
    assert not await shop.is_good(won[0])


async def test_of_fifty_at_once_only_those_who_are_the_client_can_win(shop: Shop) -> None:
    """They share a statement with those who are not."""
    code = await shop.code(verifier=VERIFIER, challenge=CHALLENGE)
    won = []

    async def one(given: ClientCredentials, verifier: str) -> None:
        with suppress(InvalidGrant, InvalidClient):
            await shop.redeem(code, given, verifier=verifier)
            won.append((given, verifier))

    async with trio.open_nursery() as nursery:
        for number in range(AT_ONCE - 1):
            # So few fail that the code is not burnt.
            nursery.start_soon(one, NAMED, pkce()[0] if number < 15 else VERIFIER)
        nursery.start_soon(one, bearer("guess"), VERIFIER)
    assert won == [(NAMED, VERIFIER)]


async def test_a_client_that_changes_back_and_forth_is_always_what_it_is_now(shop: Shop) -> None:
    for _ in range(3):
        code = await shop.code()
        await shop.sql("UPDATE oauth_clients SET redirect_hosts = '{game.example.com}'")
        assert (await shop.refused(code)).message == GONE
        await shop.sql("UPDATE oauth_clients SET redirect_hosts = '{shop.example.com}'")
        await change(shop.services, client_secret=OTHER_SECRET)
        assert isinstance(await shop.refused(code), InvalidClient)
        await change(shop.services, client_secret=SECRET)
        assert isinstance(await shop.refused(code, bearer(OTHER_SECRET)), InvalidClient)
        await shop.sql("UPDATE oauth_clients SET disabled = true")
        assert isinstance(await shop.refused(code), InvalidClient)
        await shop.sql("UPDATE oauth_clients SET disabled = false")
        assert await shop.redeem(code)


Meanwhile = Callable[[Callable[[], Awaitable[Any]]], None]


@pytest.fixture
def meanwhile(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Something happens just before the statement that redeems: after it is known, or guessed, who the client is."""
    cross = Database._run

    def happens(change: Callable[[], Awaitable[Any]]) -> None:
        left = 1 if shop.seen else 2

        async def crossing(self: Database, *arguments: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                await change()
            return await cross(self, *arguments)

        monkeypatch.setattr(Database, "_run", crossing)

    return happens


async def test_a_secret_that_is_sealed_anew_meanwhile_is_as_good_as_before(shop: Shop, meanwhile: Meanwhile) -> None:
    code = await shop.code()
    meanwhile(lambda: shop.services.oauth.clients.rotate_secret("shop"))
    assert await shop.redeem(code)


async def test_an_address_that_is_added_meanwhile_takes_nothing_away(shop: Shop, meanwhile: Meanwhile) -> None:
    code = await shop.code()
    meanwhile(lambda: change(shop.services, redirect_hosts=["game.example.com", "shop.example.com"]))
    assert await shop.redeem(code)


async def test_a_secret_that_is_replaced_meanwhile_is_refused(shop: Shop, meanwhile: Meanwhile) -> None:
    code = await shop.code()
    meanwhile(lambda: change(shop.services, client_secret=OTHER_SECRET))
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
async def test_what_ends_meanwhile_is_refused(
    shop: Shop, meanwhile: Meanwhile, sql: str, error: type[ApiError]
) -> None:
    code = await shop.code()
    meanwhile(lambda: shop.sql(sql))
    assert isinstance(await shop.refused(code), error)
    assert len(await shop.sql("SELECT FROM oauth_grants")) <= shop.seen  # none but that of the code before


async def test_a_code_that_is_redeemed_meanwhile_has_been_used_twice(shop: Shop, meanwhile: Meanwhile) -> None:
    code = await shop.code()
    first: list[dict[str, Any]] = []

    async def redeem_first() -> None:
        await trio.sleep(2 * SLOW_BATCH_S)  # only then another batch runs beside the one that waits
        first.append(await shop.redeem(code))

    meanwhile(redeem_first)
    assert isinstance(await shop.refused(code), InvalidGrant)
    assert not await shop.is_good(first[0])
