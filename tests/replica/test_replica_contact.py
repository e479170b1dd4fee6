"""What a replica does when the service refuses it, or has no more what it needs; and its asynchronous form."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from sso.replica import feed
from sso.replica.async_replica import AsyncReplica
from sso.replica.replica import Replica, ReplicaUnavailable
from tests.kit import postgres
from tests.kit.server import until
from tests.replica.conftest import MAX_LISTED_USERS, Game, role

MANY_USERS = MAX_LISTED_USERS + 1


def is_refused(replica: Replica, user_id: str) -> bool:
    try:
        replica.check(user_id, "build")
    except ReplicaUnavailable as error:
        return "refuses the client" in str(error)
    return False


def answers(replica: Replica, user_id: str) -> bool:
    try:
        return replica.check(user_id, "build")
    except ReplicaUnavailable:
        return False


def test_replica_of_a_removed_client_stops_although_it_may_serve_stale_answers(game: Game) -> None:
    ann = game.users[0]
    with game.replica(max_stale_s=1, serve_stale=True) as replica:
        assert answers(replica, ann)
        assert game.root.request("DELETE", f"/clients/{game.client_id}").is_success
        assert until(lambda: is_refused(replica, ann))
        game.save_client(game.secret)
        assert until(lambda: answers(replica, ann))
        game.assert_equal(replica, "accepted again")


def test_nobody_has_rules_at_a_removed_application(game: Game) -> None:
    ann, path = game.users[0], f"/applications/{game.app}"
    with game.replica() as replica:
        assert answers(replica, ann)
        assert game.root.request("DELETE", path).is_success
        assert until(lambda: not replica.check(ann, "build"))
        assert game.root.request("POST", f"{path}/restore").is_success
        assert until(lambda: replica.check(ann, "build"))
        game.save_client(game.secret)  # the token of the test was refused meanwhile
        game.assert_equal(replica, "restored")


def test_replica_with_a_changed_secret_reads_a_new_copy(game: Game, tmp_path: Path) -> None:
    ann = game.users[0]
    with game.replica(data_dir=tmp_path) as replica:
        assert replica.check(ann, "build")
        game.save_client("the next secret of this client, as long as the first")
        game.call("roles", action="save", application_id=game.app, data=role("r1", "kick"))
        game.call("meta/data", action="save", application_id=game.app, data={"user_id": ann, "roles": ["r1"]})
        assert until(lambda: replica.check(ann, "kick"))  # the token that it has stays valid
    options: dict[str, Any] = {"server": game.studio.server.base_url, "client_id": game.client_id}
    with Replica(game.app, client_secret=game.secret, data_dir=tmp_path, max_stale_s=0.1, **options) as replica:
        assert until(lambda: is_refused(replica, ann))  # its copy can be read, but the service does not know the secret
    game.secret = "the next secret of this client, as long as the first"
    with game.replica(data_dir=tmp_path) as replica:  # the copy of the other secret cannot be read
        game.assert_equal(replica, "with the new secret")


def test_many_changed_users_are_one_event_with_a_new_snapshot(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group with many users is deleted: they lose the role that it gives, or keep it by another group."""
    monkeypatch.setattr(feed, "PAGE_USERS", MANY_USERS // 2)  # a snapshot has several pages
    dsn, group, last = game.studio.dsn, game.groups[0], str(70_000_000 + MANY_USERS)
    game.call("roles", action="save", application_id=game.app, data=role("r1", "kick"))
    grants = {"services": {str(game.app): {"groups": [{"group_id": group, "role": "r1", "action": "grant"}]}}}
    postgres.execute(
        dsn,
        f"""INSERT INTO users (user_id, login, login_key)
        SELECT CAST(70000000 + n AS text), name, name
        FROM generate_series(1, {MANY_USERS}) AS n, CAST('many' || n || '@example.com' AS text) AS name;
        INSERT INTO group_users (group_id, user_id)
        SELECT '{group}', CAST(70000000 + n AS text) FROM generate_series(1, {MANY_USERS}) AS n""",
    )
    game.try_request("PATCH", f"/projects/{game.project}", {"settings": grants})
    assert game.refused == 0
    path = f"/api/admin/applications/{game.app}/replica"
    with game.replica() as replica:
        assert until(lambda: replica.check("70000001", "kick") and replica.check(last, "kick"))
        cursor = game.studio.client.get(path, headers=game.bearer).json()["cursor"]
        game.call("group", action="delete", group_id=group)
        assert until(lambda: not replica.check("70000001", "kick"))
        assert not replica.check(last, "kick")
        page = game.studio.client.get(f"{path}/changes", params={"after": cursor}, headers=game.bearer).json()
        assert page["snapshot"] is True
        assert len(page["data"]) < 10


def test_replica_whose_cursor_has_expired_reads_everything_again(game: Game, tmp_path: Path) -> None:
    ann = game.users[0]
    game.call("roles", action="save", application_id=game.app, data=role("r1", "kick"))
    with game.replica(data_dir=tmp_path) as replica:
        assert not replica.check(ann, "kick")
    game.call("meta/data", action="save", application_id=game.app, data={"user_id": ann, "roles": ["r1"]})
    with game.replica() as replica:  # so that the change has its place in the stream
        assert until(lambda: replica.check(ann, "kick"))
    postgres.execute(
        game.studio.dsn,
        "DELETE FROM change_events WHERE position IS NOT NULL; UPDATE change_stream SET trimmed_to = last_position",
    )
    with game.replica(data_dir=tmp_path) as replica:
        assert until(lambda: replica.check(ann, "kick"))
        game.assert_equal(replica, "after the events were deleted")


def with_asyncio(work: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await work()

    asyncio.run(run())


@pytest.mark.parametrize("run", [trio.run, with_asyncio], ids=["trio", "asyncio"])
def test_asynchronous_replica(game: Game, run: Callable[[Callable[[], Awaitable[None]]], None]) -> None:
    options = {"server": game.studio.server.base_url, "client_id": game.client_id, "client_secret": game.secret}
    path = f"/api/admin/applications/{game.app}/replica"
    new = game.studio.user().user_id

    async def work() -> None:
        ann = game.users[0]
        async with AsyncReplica(game.app, max_stale_s=600, **options) as replica:
            assert await replica.wait_until_ready(60)
            assert await replica.check(ann, "build")
            assert not await replica.check(ann, "kick", param="gold")
            assert await replica.check(new, "build")
            assert not await replica.check("999999997", "build")  # this asks the service
            revision = game.studio.client.get(path, headers=game.bearer).json()["cursor"]
            assert await replica.check(ann, "build", at_least=revision)
            assert int(replica.revision) >= int(revision)
            assert replica.staleness is not None
            answer = await replica.answer("/access/v1/evaluations", game.questions())
            assert answer.body == game.asked_at_service()
        with pytest.raises(RuntimeError):
            await replica.__aenter__()  # a replica is used once

    run(work)
