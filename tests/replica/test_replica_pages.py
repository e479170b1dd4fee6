"""Responses to a replica end after some megabytes of rows, and it misses no user and no change."""

from collections.abc import Iterator
from typing import Any

import pytest

from sso.perm.stores.replica_rows import MAX_PAGE_BYTES
from sso.replica.clock import ReplicaClock
from sso.replica.copy_keeper import CopyKeeper
from tests.kit import postgres
from tests.kit.server import until
from tests.replica.conftest import Game, role

THIRD = MAX_PAGE_BYTES * 3 // 8  # three such rows exceed a page


class Pages:
    """The requests of a replica whose users have much data of their own."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self._path = f"/api/admin/applications/{game.app}/replica"

    def add_data(self, size: int, *user_ids: str) -> None:
        for user_id in user_ids:
            postgres.execute(
                self.game.studio.dsn,
                f"""INSERT INTO user_records (application_id, user_id, public_data) VALUES (
                {self.game.app}, '{user_id}',
                jsonb_build_object('badge', jsonb_build_object('value', true, 'params', repeat('x', {size}))))""",
            )

    def add_event(self, kind: str, user_id: str, data: str) -> None:
        """Adds an event, which gets a place in the stream with the next one that the service adds."""
        postgres.execute(
            self.game.studio.dsn,
            f"INSERT INTO change_events (type, user_id, data) VALUES ('{kind}', '{user_id}', '{data}')",
        )

    def get(self, path: str = "", status: int = 200, **query: Any) -> Any:
        response = self.game.studio.client.get(self._path + path, params=query, headers=self.game.bearer)
        assert response.status_code == status, response.text
        return response.json()

    def users(self, **query: Any) -> Iterator[list[str]]:
        """Yields the ids of the users on each page."""
        after: str | None = ""
        while after is not None:
            page = self.get("/users", after=after, **query)
            assert sum(len(str(row)) for row in page["data"][:-1]) <= MAX_PAGE_BYTES
            yield [row[0] for row in page["data"]]
            after = page["next"]

    def changes(self, after: str, user_id: str) -> Iterator[dict[str, Any]]:
        """Yields pages until one has the change of this user."""
        while True:
            page = self.get("/changes", after=after, wait=20)
            assert page["next"] > after
            yield page
            after = page["next"]
            if user_id in [row[0] for row in page["data"]]:
                return

    def save_roles(self, *user_ids: str) -> None:
        for user_id in user_ids:
            data = {"user_id": user_id, "roles": ["r1"]}
            self.game.call("meta/data", action="save", application_id=self.game.app, data=data)


@pytest.fixture
def pages(game: Game) -> Pages:
    game.call("roles", action="save", application_id=game.app, data=role("r1", "kick"))
    return Pages(game)


def test_pages_of_users_with_much_data_are_shorter(pages: Pages) -> None:
    game = pages.game
    pages.add_data(THIRD, *game.users)
    listed = list(pages.users(limit=5000))
    assert len(listed) > 1
    assert [user_id for page in listed for user_id in page if user_id in game.users] == game.users
    with game.replica() as replica:
        game.assert_equal(replica, "at first")


def test_named_users_with_much_data_are_read_in_pages(pages: Pages) -> None:
    game, absent = pages.game, "999999997"
    pages.add_data(THIRD, *game.users[:5])
    ids = ",".join([absent, *reversed(game.users)])
    assert pages.get("/users", 400, ids=ids)["field"] == ["ids"]
    assert [row[0] for row in pages.get("/users", ids=game.users[0])["data"]] == game.users[:1]
    listed = list(pages.users(ids=ids))
    assert [len(page) for page in listed] == [3, 3]
    assert listed[0] + listed[1] == game.users
    keeper = CopyKeeper(ReplicaClock(), None)
    with game.replica() as replica:
        assert keeper.fetch(replica._side_feed, [absent, *game.users]) == {absent}


def test_pages_of_changes_of_users_with_much_data_are_shorter(pages: Pages) -> None:
    game = pages.game
    absent, last = "999999997", game.users[-1]
    pages.add_data(THIRD, *game.users)
    cursor = pages.get()["cursor"]
    pages.save_roles(*game.users[:3])
    pages.add_event("user_deleted", absent, "{}")
    pages.save_roles(*game.users[3:])
    with game.replica() as replica:
        assert until(lambda: replica.check(last, "kick"))
    listed = list(pages.changes(cursor, last))
    assert len(listed) > 1
    assert {row[0] for page in listed for row in page["data"]} == set(game.users)
    assert [user_id for page in listed for user_id in page["missing"]] == [absent]


def test_change_of_two_users_with_more_data_than_a_page_is_read(pages: Pages) -> None:
    user_id, into, last = pages.game.users[:3]
    pages.add_data(MAX_PAGE_BYTES, user_id, into)
    cursor = pages.get()["cursor"]
    pages.add_event("user_merged", into, f'{{"from": "{user_id}", "into": "{into}"}}')
    pages.save_roles(last)
    first, *_ = pages.changes(cursor, last)
    assert {user_id, into} <= {row[0] for row in first["data"]}
