"""What every request of a busy site does costs one crossing to the database."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sso.db.database import Database
from sso.oauth.client_auth import ClientCredentials, sha1_bearer
from sso.services import Services
from tests.oauth.shop import GIVEN, NAMED, URI, new_code, redeem, refresh


@pytest.fixture
async def code(services: Services) -> str:
    return await new_code(services)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Awaitable[Any]], Awaitable[tuple[Any, int]]]:
    crossings = 0
    cross = Database._run

    async def counting(self: Database, *arguments: Any) -> Any:
        nonlocal crossings
        crossings += 1
        return await cross(self, *arguments)

    monkeypatch.setattr(Database, "_run", counting)

    async def count(work: Awaitable[Any]) -> tuple[Any, int]:
        nonlocal crossings
        crossings = 0
        return await work, crossings

    return count


async def test_crossings(
    services: Services, code: str, counted: Callable[[Awaitable[Any]], Awaitable[tuple[Any, int]]]
) -> None:
    data, crossings = await counted(redeem(services, NAMED, code))  # the first one learns who the client is
    assert crossings == 2
    data, crossings = await counted(redeem(services, NAMED, await new_code(services)))
    assert crossings == 1
    data, crossings = await counted(redeem(services, GIVEN, await new_code(services)))
    assert crossings == 2  # only the code says whose it is
    data, crossings = await counted(refresh(services, GIVEN, data["refresh_token"]))
    assert crossings == 1
    access, crossings = await counted(services.oauth.token_store.find_access_token(data["access_token"]))
    assert access is not None
    assert crossings == 1


async def test_a_changed_secret_counts_at_once_although_the_client_was_seen_before(
    services: Services, code: str
) -> None:
    from sso.oauth.errors import InvalidClient

    data = await redeem(services, GIVEN, code)
    data = await refresh(services, GIVEN, data["refresh_token"])
    new = await services.oauth.clients.rotate_secret("shop")
    assert new
    await services.oauth.clients.finish_rotation("shop")
    with pytest.raises(InvalidClient):
        await refresh(services, GIVEN, data["refresh_token"])
    fresh = ClientCredentials(bearer=sha1_bearer(URI, new).decode())
    assert await refresh(services, fresh, data["refresh_token"])
