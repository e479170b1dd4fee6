"""If a statement of redeem, refresh or revoke fails, nothing changes, the response is an error, and a retry works."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from quart import typing as quart_types
from quart.wrappers import Response

from sso.app import build_app
from sso.db.database import Database
from sso.health import Health
from sso.oauth.clients.authentication import sha1_bearer
from sso.services import Services
from sso.telemetry.metrics import Metrics
from tests.kit.long_tests import usual_part
from tests.oauth.in_process import SECRET, URI, new_code

TABLES = ("oauth_clients", "oauth_codes", "oauth_grants", "oauth_access_tokens")
MESSAGE = "a row of the secret table"
BEARER = {"Authorization": f"Bearer {sha1_bearer(URI, SECRET).decode()}"}
CLIENT = {"client_id": "shop", "client_secret": SECRET}


@dataclass
class Shop:
    """A client of the application in this process, with access to its database."""

    http: quart_types.TestClientProtocol
    services: Services
    database: Database
    code: str
    tokens: dict[str, Any]

    async def redeem(self, **named: str) -> Response:
        form = {"grant_type": "authorization_code", "code": self.code, "redirect_uri": URI} | named
        return await self.http.post("/proxy/oauth/token", form=form, headers=BEARER)

    async def refresh(self) -> Response:
        form = {
            "grant_type": "refresh_token",
            "refresh_token": self.tokens["refresh_token"],
            "redirect_uri": URI,
        }
        return await self.http.post("/proxy/oauth/token", form=form, headers=BEARER)

    async def revoke(self) -> Response:
        form = CLIENT | {"refresh_token": self.tokens["refresh_token"]}
        return await self.http.post("/proxy/oauth/token/revoke", form=form)

    async def rows(self) -> dict[str, list[str]]:
        rows = {}
        for table in TABLES:
            sql = f"SELECT CAST(t AS text) FROM {table} t ORDER BY 1"
            rows[table] = [row[0] for row in await self.database.run_sql(sql, [])]
        return rows


@pytest.fixture
async def shop(services: Services) -> Shop:
    app = build_app(services, Health(), Metrics())
    return Shop(app.test_client(), services, services.database, await new_code(services), {})


async def ready_to_redeem(shop: Shop) -> Callable[[], Awaitable[Response]]:
    return shop.redeem


async def ready_to_redeem_with_cached_client(shop: Shop) -> Callable[[], Awaitable[Response]]:
    """The client is cached, and the request names it."""
    assert (await shop.redeem()).status_code == 200
    shop.code = await new_code(shop.services)
    return partial(shop.redeem, client_id="shop")


async def ready_to_refresh(shop: Shop) -> Callable[[], Awaitable[Response]]:
    shop.tokens = await (await shop.redeem()).get_json()
    return shop.refresh


async def ready_to_revoke(shop: Shop) -> Callable[[], Awaitable[Response]]:
    shop.tokens = await (await shop.redeem()).get_json()
    return shop.revoke


Ready = Callable[[Shop], Awaitable[Callable[[], Awaitable[Response]]]]
# Each operation with every row that it writes.
_REDEEMED = (("oauth_codes", "UPDATE"), ("oauth_grants", "INSERT"), ("oauth_access_tokens", "INSERT"))
WRITES: dict[Ready, tuple[tuple[str, str], ...]] = {
    ready_to_redeem: _REDEEMED,
    ready_to_redeem_with_cached_client: _REDEEMED,
    ready_to_refresh: (("oauth_grants", "UPDATE"), ("oauth_access_tokens", "INSERT")),
    ready_to_revoke: (("oauth_grants", "DELETE"), ("oauth_access_tokens", "DELETE")),
}
# Each operation with every table that it reads.
READS: dict[Ready, tuple[str, ...]] = {
    ready_to_redeem: ("oauth_codes", "oauth_clients"),
    ready_to_redeem_with_cached_client: ("oauth_codes", "oauth_clients", "users"),
    ready_to_refresh: ("oauth_grants", "users"),
    ready_to_revoke: ("oauth_clients", "oauth_grants"),
}
TIMES = {
    "before": "CREATE TRIGGER fault BEFORE {event} ON {table} FOR EACH ROW EXECUTE FUNCTION fault()",
    "after": "CREATE TRIGGER fault AFTER {event} ON {table} FOR EACH ROW EXECUTE FUNCTION fault()",
    "commit": "CREATE CONSTRAINT TRIGGER fault AFTER {event} ON {table} DEFERRABLE INITIALLY DEFERRED "
    "FOR EACH ROW EXECUTE FUNCTION fault()",
}
# The SQLSTATE of the error, and the status of the response: 503 invites the client to retry.
STATES = {"P0001": 500, "23514": 500, "53100": 503, "40001": 503, "57014": 503}


@asynccontextmanager
async def failing(database: Database, table: str, event: str, when: str, state: str) -> AsyncIterator[None]:
    function = f"""CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION '{MESSAGE}: %', TG_OP USING ERRCODE = '{state}'; END $$"""
    await database.run_sql(function, [])
    await database.run_sql(TIMES[when].format(event=event, table=table), [])
    yield
    await database.run_sql("DROP FUNCTION fault CASCADE", [])


@asynccontextmanager
async def gone(database: Database, table: str) -> AsyncIterator[None]:
    await database.run_sql(f"ALTER TABLE {table} RENAME TO elsewhere", [])
    yield
    await database.run_sql(f"ALTER TABLE elsewhere RENAME TO {table}", [])


async def assert_refused(response: Response, status: int) -> None:
    body = await response.get_json()
    assert (response.status_code, set(body)) == (status, {"error", "error_description"})
    assert body["error"] == ("temporarily_unavailable" if status == 503 else "server_error")
    text = (await response.get_data(as_text=True)).lower()
    assert [word for word in (MESSAGE, "fault", "oauth_", "select", "traceback") if word in text] == []


def name_of(ready: Ready) -> str:
    return ready.__name__.removeprefix("ready_to_")


@pytest.mark.parametrize("ready", WRITES, ids=name_of)
async def test_failed_write_changes_nothing_and_can_be_retried(shop: Shop, ready: Ready) -> None:
    for number, (table, event) in enumerate(WRITES[ready]):
        part = 3 * [*WRITES].index(ready) + number
        for when, state in usual_part(itertools.product(TIMES, STATES), 2, part):
            act = await ready(shop)
            before = await shop.rows()
            async with failing(shop.database, table, event, when, state):
                await assert_refused(await act(), STATES[state])
                assert await shop.rows() == before, (table, when, state)
            response = await act()
            assert response.status_code == 200, (table, when, state, await response.get_data(as_text=True))
            assert await shop.rows() != before, (table, when, state)
            shop.code = await new_code(shop.services)


@pytest.mark.parametrize("ready", READS, ids=name_of)
async def test_failed_read_is_a_server_error_and_not_an_invalid_grant(shop: Shop, ready: Ready) -> None:
    """A client discards its token after "invalid_grant", but retries after "server_error"."""
    act = await ready(shop)
    before = await shop.rows()
    for table in READS[ready]:
        async with gone(shop.database, table):
            await assert_refused(await act(), 500)
        assert await shop.rows() == before, table
    response = await act()
    assert response.status_code == 200, await response.get_data(as_text=True)


async def test_replay_is_a_server_error_if_the_grant_cannot_be_revoked(shop: Shop) -> None:
    assert (await shop.redeem()).status_code == 200
    before = await shop.rows()
    for when in TIMES:
        async with failing(shop.database, "oauth_grants", "DELETE", when, "P0001"):
            await assert_refused(await shop.redeem(), 500)
            assert await shop.rows() == before, when
    response = await shop.redeem()
    assert (response.status_code, (await response.get_json())["error"]) == (400, "invalid_grant")
    assert (await shop.rows())["oauth_grants"] == []
