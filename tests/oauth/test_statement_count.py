"""The frequent requests need a single call of the database."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sso.db.database import Database
from sso.oauth.clients.authentication import ClientCredentials, sha1_bearer
from sso.services import Services
from tests.kit.builders import add_user
from tests.kit.operator_changes import finish_rotation, rotate_secret
from tests.oauth.in_process import BEARER_ONLY, CREDENTIALS, URI, apply_client, log_in, new_code, redeem, refresh


@pytest.fixture
async def code(services: Services) -> str:
    return await new_code(services)


@pytest.fixture
def count_calls(monkeypatch: pytest.MonkeyPatch) -> Callable[[Awaitable[Any]], Awaitable[tuple[Any, int]]]:
    calls = 0
    cross = Database._run_now

    async def counting(self: Database, *arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        return await cross(self, *arguments, **options)

    monkeypatch.setattr(Database, "_run_now", counting)

    async def count(work: Awaitable[Any]) -> tuple[Any, int]:
        nonlocal calls
        calls = 0
        return await work, calls

    return count


async def test_token_requests_of_a_cached_client_need_one_statement(
    services: Services, code: str, count_calls: Callable[[Awaitable[Any]], Awaitable[tuple[Any, int]]]
) -> None:
    data, calls = await count_calls(redeem(services, CREDENTIALS, code))  # the client is not cached yet
    assert calls == 2
    data, calls = await count_calls(redeem(services, CREDENTIALS, await new_code(services)))
    assert calls == 1
    data, calls = await count_calls(redeem(services, BEARER_ONLY, await new_code(services)))
    assert calls == 2  # the request names no client, so the code must be read first
    data, calls = await count_calls(refresh(services, BEARER_ONLY, data["refresh_token"]))
    assert calls == 1
    access, calls = await count_calls(services.oauth.token_store.find_access_token(data["access_token"]))
    assert access is not None
    assert calls == 1


async def test_pages_of_a_sign_in_at_a_known_client_need_five_statements(
    services: Services, count_calls: Callable[[Awaitable[Any]], Awaitable[tuple[Any, int]]]
) -> None:
    await apply_client(services, profile="oidc")
    user = await add_user(services)
    await log_in(services, user.login)
    code, calls = await count_calls(log_in(services, user.login))
    # The page counts the request of the network and saves the authorization. The sign-in reads the user and the
    # counters, starts the session with a code, and looks for a notice about a new browser.
    assert calls == 5
    await redeem(services, CREDENTIALS, code)
    code = await log_in(services, user.login)
    _, calls = await count_calls(redeem(services, CREDENTIALS, code))
    assert calls == 1


async def test_secret_change_takes_effect_at_once_although_the_client_is_cached(services: Services, code: str) -> None:
    from sso.oauth.errors import InvalidClient

    data = await redeem(services, BEARER_ONLY, code)
    data = await refresh(services, BEARER_ONLY, data["refresh_token"])
    new = await rotate_secret(services, "shop")
    assert new
    await finish_rotation(services, "shop")
    with pytest.raises(InvalidClient):
        await refresh(services, BEARER_ONLY, data["refresh_token"])
    fresh = ClientCredentials(bearer=sha1_bearer(URI, new).decode())
    assert await refresh(services, fresh, data["refresh_token"])
