"""A replica gives the answers of the service, whatever changes."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest

from sso.perm.replica.copy import ReplicaCopy
from sso.replica.clock import ReplicaClock
from sso.replica.copy_keeper import CopyKeeper
from sso.replica.feed import ChangesPage, Feed
from sso.replica.replica import Replica
from tests.kit.long_tests import IS_LONG_RUN
from tests.perm.endpoints.connections import ROUNDS
from tests.replica.conftest import Game


@pytest.mark.parametrize("seed", range(1, 9) if IS_LONG_RUN else [1])
def test_replica_answers_like_the_service_after_random_changes(game: Game, seed: int) -> None:
    random = Random(seed)
    with game.replica() as replica:
        game.assert_equal(replica, "at first")
        history = []
        for _ in range(200 if IS_LONG_RUN else 15):
            history.append(game.change(random))
            game.assert_equal(replica, "\n".join(history))
        assert game.refused < len(history) / 2, history


def test_replica_answers_about_merged_users_like_the_service(game: Game, tmp_path: Path) -> None:
    guest, middle, account = game.users[:3]
    for user_id in (guest, account):
        data = {"user_id": user_id, "private_data": {"sell": {"value": user_id == account}}}
        game.call("meta/data", action="save", application_id=game.app, data=data)

    def request(user_id: str, operation: str, **body: str) -> None:
        game.try_request("POST", f"/users/{user_id}/{operation}", body)
        assert game.refused == 0

    with game.replica(data_dir=tmp_path) as replica:
        game.assert_equal(replica, "at first")
        request(guest, "merge", into=middle)
        request(middle, "merge", into=account)
        game.assert_equal(replica, "merged")
    with game.replica(data_dir=tmp_path) as replica:
        game.assert_equal(replica, "restored from the file")
    with game.replica() as replica:
        game.assert_equal(replica, "read anew")
        request(account, "unmerge", **{"from": middle})
        game.assert_equal(replica, "separated")


def test_user_is_found_although_changes_come_in_all_the_time(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper, users, absent = CopyKeeper(ReplicaClock(), None), Feed.users, "999999997"

    def apply_a_change() -> None:
        if keeper._changing.acquire(blocking=False):
            keeper.cursor += "0"
            keeper._changing.release()

    def users_and_a_change(feed: Feed, user_ids: Sequence[str]) -> list[list[Any]]:
        rows = users(feed, user_ids)
        thread = Thread(target=apply_a_change)  # another one than that which asks
        thread.start()
        thread.join()
        return rows

    with game.replica() as replica:
        keeper.load(replica._side_feed)
        assert keeper.copy is not None
        keeper.copy.remove(game.users[:1])
        monkeypatch.setattr(Feed, "users", users_and_a_change)
        assert keeper.fetch(replica._side_feed, [game.users[0], absent]) == {absent}
    assert game.users[0] in keeper.copy


class NewEnemy:
    """Gives a user a role and takes it away, and asks the replica with the revision of that change."""

    def __init__(self, game: Game) -> None:
        self._game = game
        self._user_id = game.users[0]
        game.call("roles", action="save", application_id=game.app, data=ROLE)

    def rounds(self, replica: Replica, count: int) -> list[int]:
        """Returns the rounds in which an answer was older than the revision that it had to have."""
        return [number for number in range(count) if not self._is_fresh(replica, number)]

    def _is_fresh(self, replica: Replica, number: int) -> bool:
        roles = ["r1"] if number % 2 == 0 else []
        revision = self._save(roles)
        return replica.check(self._user_id, "kick", at_least=revision) is bool(roles)

    def _save(self, roles: list[str]) -> str:
        """Returns the revision of the change, as soon as it has one."""
        game = self._game
        path = f"/api/admin/applications/{game.app}/replica"
        after = game.studio.client.get(path, headers=game.bearer).json()["cursor"]
        data = {"user_id": self._user_id, "roles": roles}
        game.call("meta/data", action="save", application_id=game.app, data=data)
        while True:
            query = {"after": after, "wait": 20}
            page = game.studio.client.get(f"{path}/changes", params=query, headers=game.bearer).json()
            after = page["next"]
            if self._user_id in [row[0] for row in page["data"]]:
                return str(after)


ROLE = {"name": "r1", "meta": {"private_data": {"kick": {"value": True}}}}
TIMES = ROUNDS or 4


@pytest.mark.timeout(240 + TIMES)
def test_answers_are_not_older_than_the_revision_that_was_asked_for(
    game: Game, monkeypatch: pytest.MonkeyPatch
) -> None:
    enemy = NewEnemy(game)
    with game.replica() as replica:
        assert enemy.rounds(replica, TIMES) == []

        def announce_only(keeper: CopyKeeper, _copy: ReplicaCopy, page: ChangesPage, _feed: Feed) -> None:
            keeper.cursor = page.cursor  # the planted fault: the revision is there before the changes

        monkeypatch.setattr(CopyKeeper, "_apply", announce_only)
        assert enemy.rounds(replica, 4) != []
