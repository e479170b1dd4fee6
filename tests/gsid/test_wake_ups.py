"""A change of a game session wakes the worker that the row names, no worker, or all workers if none is known."""

from collections.abc import AsyncIterator

import pytest
import trio

from sso.accounts.model import User
from sso.bus.bus import Bus
from sso.bus.subscriptions import Rescans
from sso.bus.wiring import build_bus
from sso.config import Settings
from sso.core.encryption import Keyring
from sso.db.database import Database
from sso.gsid.model import LoginReady, PollOutcome
from sso.gsid.socket_registry import new_socket_id
from sso.gsid.wiring import GameLogin
from sso.services import Services, build
from tests.kit.builders import add_user
from tests.kit.polls import new_session, result, start_poll, until_polled

TIMEOUT_S = 60
OTHER = "0123456789abcdef"  # the name of a worker that does not run


@pytest.fixture(autouse=True)
def no_rescan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sso.bus.bus.RESCAN_S", 3600.0)


@pytest.fixture
async def user(services: Services) -> User:
    return await add_user(services)


@pytest.fixture
async def listener(database: Database, services: Services, nursery: trio.Nursery) -> AsyncIterator[Bus]:
    """The bus of another worker, while that of ``services`` runs, too."""
    bus = build_bus(database)
    for each in (bus, services.bus):
        await nursery.start(each.run)
        await each.connected.wait()
    await services.bus.wait_until_sent()  # that the keys of the fixture have changed
    services.bus.sent = 0
    yield bus
    nursery.cancel_scope.cancel()


async def hold_by(services: Services, gsid: str, worker: str) -> None:
    """Starts a poll in the name of another worker."""
    poll = await start_poll(services, gsid)
    set_holder = "UPDATE game_sessions SET poll_holder = $2 WHERE gsid = $1"
    await services.database.run_sql(set_holder, [gsid, f"{poll.number}@{worker}"])


async def test_change_wakes_poll_and_socket_of_the_worker_that_the_row_names(
    services: Services, listener: Bus, user: User
) -> None:
    game = services.game_login
    for count, change in enumerate(("confirm", "deny", "close"), 1):
        gsid = await new_session(services)
        await hold_by(services, gsid, listener.worker)
        assert await game.socket_store.attach(gsid, new_socket_id(listener.worker))
        arguments = {"confirm": (gsid, user), "deny": (gsid,), "close": (gsid, "OK")}[change]
        with (
            listener.subscribe(f"poll:{gsid}", Rescans.NEVER) as poll,
            listener.subscribe(f"socket:{gsid}", Rescans.NEVER) as socket,
            trio.fail_after(TIMEOUT_S),
        ):
            assert await getattr(game.sessions, change)(*arguments)
            await poll.receive()
            await socket.receive()
        await services.bus.wait_until_sent()  # the answer of the server
        assert services.bus.sent == count, change


async def test_change_without_a_holder_sends_nothing(services: Services, listener: Bus, user: User) -> None:
    """A poll whose time is over is no holder."""
    assert await services.game_login.sessions.confirm(await new_session(services), user)
    gsid = await new_session(services)
    await hold_by(services, gsid, listener.worker)
    await services.database.run_sql("UPDATE game_sessions SET held_until = now() WHERE gsid = $1", [gsid])
    assert await services.game_login.sessions.confirm(gsid, user)
    await services.bus.wait_until_sent()
    assert services.bus.sent == 0


async def test_poll_and_socket_of_the_previous_release_wake_all_workers(
    services: Services, listener: Bus, user: User
) -> None:
    """The previous release counts its polls, but leaves the column poll_holder as it is."""
    gsid = await new_session(services)
    await hold_by(services, gsid, OTHER)
    await services.database.run_sql(
        "UPDATE game_sessions SET poll = poll + 1, socket = 'abc', last_seen = now() WHERE gsid = $1", [gsid]
    )
    with (
        listener.subscribe(f"poll:{gsid}", Rescans.NEVER) as poll,
        listener.subscribe(f"socket:{gsid}", Rescans.NEVER) as socket,
        trio.fail_after(TIMEOUT_S),
    ):
        assert await services.game_login.sessions.confirm(gsid, user)
        await poll.receive()
        await socket.receive()


async def test_newer_poll_and_newer_socket_wake_the_older_ones(services: Services, listener: Bus) -> None:
    game = services.game_login
    gsid = await new_session(services)
    await hold_by(services, gsid, listener.worker)
    assert await game.socket_store.attach(gsid, new_socket_id(listener.worker))
    with (
        listener.subscribe(f"poll:{gsid}", Rescans.NEVER) as poll,
        listener.subscribe(f"socket:{gsid}", Rescans.NEVER) as socket,
        trio.fail_after(TIMEOUT_S),
    ):
        await start_poll(services, gsid)
        await poll.receive()
        assert await game.socket_store.attach(gsid, new_socket_id(services.bus.worker))
        await socket.receive()


async def test_closed_socket_and_new_stage_wake_what_they_concern(services: Services, listener: Bus) -> None:
    game = services.game_login
    gsid, socket_id = await new_session(services), new_socket_id(listener.worker)
    await hold_by(services, gsid, listener.worker)
    assert await game.socket_store.attach(gsid, socket_id)
    with (
        listener.subscribe(f"poll:{gsid}", Rescans.NEVER) as poll,
        listener.subscribe(f"socket:{gsid}", Rescans.NEVER) as socket,
        trio.fail_after(TIMEOUT_S),
    ):
        await game.sessions.set_stage(gsid, "opened")
        await socket.receive()
        assert poll.statistics().current_buffer_used == 0
        await game.socket_store.cancel(gsid, socket_id)
        await poll.receive()


async def test_poll_in_the_same_worker_is_woken_without_a_message(services: Services, user: User) -> None:
    """The bus does not run at all."""
    game, gsid, outcomes = services.game_login, await new_session(services), list[PollOutcome]()
    waiting = services.bus.waiting

    async def poll() -> None:
        outcomes.append(await result(game, gsid))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(poll)
        await until_polled(services, gsid, 1)
        assert await game.sessions.confirm(gsid, user)
    assert isinstance(outcomes[0], LoginReady)
    assert services.bus.waiting == waiting


async def test_poll_in_another_worker_is_woken(
    services: Services, listener: Bus, user: User, settings: Settings, database: Database, keyring: Keyring
) -> None:
    other = build(settings, database, keyring, listener)
    await other.keys.load()
    game: GameLogin = other.game_login
    gsid, outcomes = await new_session(services), list[PollOutcome]()

    async def poll() -> None:
        outcomes.append(await result(game, gsid))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(poll)
        await until_polled(services, gsid, 1)
        assert await services.game_login.sessions.confirm(gsid, user)
    assert isinstance(outcomes[0], LoginReady)
