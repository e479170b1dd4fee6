"""Game sessions and polls on the stores of a process."""

from collections.abc import AsyncIterator
from ipaddress import ip_address

import pytest
import trio

from sso.accounts.model import LoginOptions, User
from sso.core.ids import record_id
from sso.db.database import Database
from sso.gsid.model import Claim, Poll, PollOutcome
from sso.gsid.wiring import GameLogin
from sso.services import Services
from tests.kit.builders import add_user

KEY = b"early polls"


@pytest.fixture
async def user(services: Services) -> User:
    return await add_user(services)


@pytest.fixture
async def game(services: Services) -> AsyncIterator[GameLogin]:
    """Game login with its background tasks."""
    async with trio.open_nursery() as nursery:
        await nursery.start(services.bus.run)
        await nursery.start(services.game_login.held_polls.run)
        await services.bus.connected.wait()
        yield services.game_login
        nursery.cancel_scope.cancel()


async def new_session(services: Services) -> str:
    options = LoginOptions(address=ip_address("192.0.2.1"))
    return (await services.game_login.registration.register(options, None)).gsid


async def status(database: Database, gsid: str) -> str:
    (row,) = await database.run_sql("SELECT status FROM game_sessions WHERE gsid = $1", [gsid])
    return str(row["status"])


async def start_poll(services: Services, gsid: str) -> Poll:
    poll = await services.game_login.polls._store.start(gsid)
    assert poll is not None
    return poll


def claim_of(poll: Poll) -> Claim:
    return Claim(poll.gsid, poll.number, record_id())


async def until_notified(services: Services) -> None:
    """Returns when every notification that was sent before has arrived; they arrive in order."""
    with services.bus.subscribe("until notified") as signals, trio.fail_after(60):
        await services.database.run_sql("SELECT pg_notify('sso', 'until notified')", [])
        await signals.receive()


async def until_polled(services: Services, gsid: str, number: int) -> None:
    with trio.fail_after(60):
        while True:
            (row,) = await services.database.run_sql("SELECT poll FROM game_sessions WHERE gsid = $1", [gsid])
            if row["poll"] >= number:
                return
            await trio.sleep(0.01)


async def result(game: GameLogin, gsid: str) -> PollOutcome:
    with trio.fail_after(60):
        return await game.polls.wait_for_result(gsid, KEY)
