"""Requests for tokens share a statement, but do not wait for locks on rows of other users and clients."""

from functools import partial

import jwt
import pytest
import trio
from msgspec.structs import replace

from sso.core.ids import digest
from sso.db.statement import Statement
from sso.db.transaction import Transaction
from sso.oauth.authorization import connected_site_store
from sso.oauth.errors import InvalidGrant
from sso.services import Services
from tests.kit.batches import while_locked
from tests.kit.conditions import until_blocking
from tests.kit.plans import assert_plan_uses_indexes
from tests.oauth.in_process import CREDENTIALS, apply_client, new_code, redeem, refresh

_LOCK_CLIENT = Statement("SELECT 1 FROM oauth_clients WHERE client_id = 'shop' FOR UPDATE")
_DELETE_CODES = Statement("DELETE FROM oauth_codes")
_COUNT_GRANTS_THAT_END_EARLY = Statement(
    "SELECT count(*) FROM oauth_grants g JOIN oauth_access_tokens a ON a.grant_id = g.id WHERE g.expires < a.expires"
)
NAMES = ("held", "shop", "shop")  # the client of each request; the first one waits


@pytest.mark.parametrize("locked", ["users", "oauth_clients"])
async def test_redemption_does_not_wait_for_a_lock_of_another_user_or_client(
    services: Services, dsn: str, locked: str
) -> None:
    credentials = {name: replace(CREDENTIALS, client_id=name) for name in NAMES}
    for name in credentials:  # so that it is cached
        await redeem(services, credentials[name], await new_code(services, client_id=name))
    codes = [await new_code(services, client_id=name) for name in NAMES]
    (holder,) = await services.database.run_sql("SELECT * FROM oauth_codes WHERE digest = $1", [digest(codes[0])])
    column = {"users": "user_id", "oauth_clients": "client_id"}[locked]
    lock = f"SELECT 1 FROM {locked} WHERE {column} = '{holder[column]}' FOR UPDATE"
    calls = [partial(redeem, services, credentials[name], code) for name, code in zip(NAMES, codes, strict=True)]
    tokens = await while_locked(dsn, lock, services.oauth.token_store._redeem, calls)
    assert len({token["access_token"] for token in tokens}) == len(NAMES)


async def test_refresh_does_not_wait_for_the_lock_of_another_grant(services: Services, dsn: str) -> None:
    sites = [await redeem(services, CREDENTIALS, await new_code(services)) for _ in NAMES]
    tokens = [site["refresh_token"] for site in sites]
    grant = jwt.decode(tokens[0], options={"verify_signature": False})["jti"].partition(".")[0]
    lock = f"SELECT 1 FROM oauth_grants WHERE id = '{grant}' FOR UPDATE"
    calls = [partial(refresh, services, CREDENTIALS, token) for token in tokens]
    refreshed = await while_locked(dsn, lock, services.oauth.token_store._rotate, calls)
    assert len({token["access_token"] for token in refreshed}) == len(NAMES)


async def test_grant_is_kept_as_long_as_its_access_token(services: Services) -> None:
    """Also if the operator lets refresh tokens end earlier."""
    store = services.oauth.token_store
    store.lifetimes = replace(store.lifetimes, refresh_s=60)
    token = (await redeem(services, CREDENTIALS, await new_code(services)))["refresh_token"]
    for _ in range(2):
        assert await services.database.value(_COUNT_GRANTS_THAT_END_EARLY) == 0
        token = (await refresh(services, CREDENTIALS, token))["refresh_token"]


async def test_code_that_is_deleted_under_a_lock_of_its_client_is_not_redeemed(services: Services) -> None:
    await redeem(services, CREDENTIALS, await new_code(services))  # so that the client is cached
    code, locked = await new_code(services), trio.Event()

    async def delete_codes(tx: Transaction) -> None:
        await tx.value(_LOCK_CLIENT)
        locked.set()
        await until_blocking(tx)
        await tx.value(_DELETE_CODES)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(services.database.transaction, delete_codes)
        await locked.wait()
        with pytest.raises(InvalidGrant):
            await redeem(services, CREDENTIALS, code)


async def test_service_token_is_issued_despite_a_lock_on_another_client(services: Services, dsn: str) -> None:
    clients = []
    for name in NAMES[:2]:
        await apply_client(
            services, client_id=name, profile="oidc", grant_types=["client_credentials"], application_id=1
        )
        client = await services.oauth.clients.get(name)
        assert client is not None
        assert client.secret_sealed is not None
        clients.append((client, client.secret_sealed))
    lock = "SELECT 1 FROM oauth_clients WHERE client_id = 'held' FOR UPDATE"
    calls = [partial(services.service_tokens.issue, *client) for client in clients]
    tokens = await while_locked(dsn, lock, services.service_tokens._issue, calls)
    assert [bool(token and await services.service_tokens.identity_of(token)) for token in tokens] == [True] * 2


async def test_plan_made_for_small_tables_uses_indexes(services: Services) -> None:
    redeem_batch = services.oauth.token_store._redeem
    for _ in range(2):
        for batch in (redeem_batch._skipping, redeem_batch._waiting):
            await assert_plan_uses_indexes(services.database, batch._statement.sql)
        await new_code(services)
        for table in ("users", "oauth_clients", "oauth_codes"):
            await services.database.run_sql(f"VACUUM ANALYZE {table}", [])


async def test_account_page_does_not_read_the_clients_that_the_user_has_not_used(services: Services) -> None:
    await assert_plan_uses_indexes(services.database, connected_site_store._LIST.sql)
