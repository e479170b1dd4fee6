"""A ban against sign-ins at the same time: afterwards, nothing that was issued works."""

import httpx
import pytest
import trio

from tests.admin.conftest import Administrator
from tests.kit.builders import PASSWORD
from tests.perm.endpoints.conftest import FACTOR, ApiUser, Studio, studio
from tests.races.conftest import CONCURRENT

pytestmark = pytest.mark.two_workers

__all__ = ["studio"]


@pytest.fixture
def player(studio: Studio) -> tuple[ApiUser, int]:
    """A user, and an application to sign in to."""
    return studio.user(), studio.application()


@pytest.mark.parametrize("at_application", [False, True])
async def test_no_sign_in_survives_a_concurrent_ban(
    studio: Studio, player: tuple[ApiUser, int], clients: list[httpx.AsyncClient], at_application: bool
) -> None:
    root, (user, application) = Administrator.of(studio.root), player
    scope = {"application_id": application} if at_application else "all"
    answers: list[httpx.Response] = []
    banned: list[httpx.Response] = []

    async def sign_in(client: httpx.AsyncClient) -> None:
        body = {"login": user.login, "password": PASSWORD, "factor": FACTOR, "app_id": application}
        answers.append(await client.post("/proxy/api/login", json=body))

    async def ban() -> None:
        url, body = f"/api/admin/users/{user.user_id}/bans", {"scope": scope, "reason": "race"}
        while len(answers) < CONCURRENT // 5:  # noqa: ASYNC110 - in the middle of the sign-ins
            await trio.sleep(0.001)
        banned.append(await clients[0].post(url, json=body, headers=root.headers))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ban)
        for client in clients[1:]:
            nursery.start_soon(sign_in, client)
    assert banned[0].status_code == 201, banned[0].text
    outcomes = {answer.status_code for answer in answers}
    assert outcomes <= {200, 401, 403}, outcomes
    for answer in answers:
        if answer.status_code != 200:
            continue
        data = answer.json()
        token = await clients[0].post("/proxy/api/login", json={"token": data["token"], "app_id": application})
        headers = {"Authorization": f"Bearer {data['jwt']}", "Factor": FACTOR}
        jwt = await clients[1].post("/api/permissions/user/info", json={}, headers=headers)
        assert (token.status_code, jwt.status_code) == (403, 401), (token.text, jwt.text)
