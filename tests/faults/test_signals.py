"""Workers and receivers are killed while accounts change: no signal is lost, and none comes out of order."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest

from tests.admin.conftest import Administrator
from tests.faults import ROUNDS, rounds, serving
from tests.kit.browser import query
from tests.kit.long_tests import IS_LONG_RUN
from tests.kit.oauth import close_all, new_browser
from tests.kit.postgres import Postgres
from tests.kit.server import NO_LIMITS, Server, until
from tests.kit.signals import POLL, PUSH, PushReceiver, SignalClient, event_of, push_receiver, signal_client
from tests.perm.endpoints.conftest import Studio

USERS, CHANGES = (4, 10) if IS_LONG_RUN else (2, 6)  # of each user in a round
MAX_CHANGES = 100 * CHANGES
CHANGES_PER_KILL = 12 if IS_LONG_RUN else 5
NAMES = {"user_disabled": "account-disabled", "user_enabled": "account-enabled"}
pytestmark = pytest.mark.timeout(120 + 120 * ROUNDS)


@pytest.fixture(scope="module")
def server(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    dsn = postgres_server.fresh()
    with serving(tmp_path_factory.mktemp("signals"), SSO_DATABASE_URL=dsn, **NO_LIMITS) as server:
        yield server
        close_all()
    postgres_server.drop(dsn)


class Received:
    """Events by user, each once: a repeated one has the same id."""

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.names: dict[str, list[str]] = {}

    def add(self, claims: dict[str, Any]) -> None:
        name = event_of(claims)[0]
        if claims["jti"] not in self.ids and name in NAMES.values():
            self.names.setdefault(claims["sub_id"]["sub"], []).append(name)
        self.ids.add(claims["jti"])


class AccountChanges(threading.Thread):
    """Disables and enables the users in turn, until a worker was killed meanwhile.

    A change whose answer is lost is repeated; it may have had its effect.
    """

    def __init__(self, root: Administrator, user_ids: list[str]) -> None:
        super().__init__()
        self._root = root
        self._user_ids = user_ids
        self.count = 0
        self.kills = 0  # of workers

    def run(self) -> None:
        for number in range(MAX_CHANGES):
            if number >= CHANGES and number % 2 == 0 and self.kills:
                return
            for user_id in self._user_ids:
                until(lambda user_id=user_id, number=number: self._change(user_id, disabled=number % 2 == 0))
                self.count += 1

    def _change(self, user_id: str, *, disabled: bool) -> bool:
        try:
            answer = self._root.client.patch(
                f"/api/admin/users/{user_id}", json={"disabled": disabled}, headers=self._root.headers
            )
        except httpx.HTTPError:
            return False
        return answer.status_code == 200


def poll(client: SignalClient, stream: str, received: Received, *, acknowledges: bool) -> None:
    """One poll. A receiver that is killed before it acknowledges gets the same events again."""
    with suppress(httpx.HTTPError, AssertionError):
        for claims in client.take(stream, returnImmediately=True):
            received.add(claims)
        if not acknowledges:
            client.acknowledged.clear()


def committed(server: Server, user_id: str) -> list[str]:
    sql = "SELECT type FROM change_events WHERE user_id = $1 AND type = ANY ($2) ORDER BY id"
    return [NAMES[row["type"]] for row in query(server, sql, user_id, list(NAMES))]


def test_kills_of_workers_and_receivers_lose_and_reorder_nothing(server: Server) -> None:
    studio = Studio(server, server.client())
    root, client = Administrator.of(studio.root), signal_client(server)
    receiver, received, pushed = PushReceiver(), Received(), Received()
    with push_receiver(receiver):
        stream = client.add_stream(delivery={"method": POLL})
        client.add_stream(delivery={"method": PUSH, "endpoint_url": receiver.url})
    user_ids = []
    for _ in range(USERS):
        browser = new_browser(server).sign_in()
        user_ids.append(client.site.claims(client.site.tokens(browser)["id_token"])["sub"])
    for number in rounds():
        writer = AccountChanges(root, user_ids)
        writer.start()
        while writer.is_alive():
            with push_receiver(receiver):
                poll(client, stream, received, acknowledges=False)
                if writer.count >= (writer.kills + 1) * CHANGES_PER_KILL:
                    with suppress(IndexError, ProcessLookupError):  # it may be restarting
                        os.kill(server.workers()[0], signal.SIGKILL)
                        writer.kills += 1
                poll(client, stream, received, acknowledges=True)
        assert writer.kills
        writer.join()
        assert until(lambda: len(server.workers()) == 2)
        expected = {user_id: committed(server, user_id) for user_id in user_ids}
        assert min(map(len, expected.values())) >= CHANGES
        check_received(client, stream, received, expected)
        with push_receiver(receiver):
            check_pushed(client, receiver, pushed, expected)
        print(f"round {number + 1}: {sum(map(len, expected.values()))} changes so far, none lost or out of order")


def check_received(client: SignalClient, stream: str, received: Received, expected: dict[str, list[str]]) -> None:
    def has_all() -> bool:
        poll(client, stream, received, acknowledges=True)
        return all(len(received.names.get(user_id, [])) >= len(names) for user_id, names in expected.items())

    assert until(has_all, 60)
    assert received.names == expected


def check_pushed(
    client: SignalClient, receiver: PushReceiver, pushed: Received, expected: dict[str, list[str]]
) -> None:
    def has_all() -> bool:
        while receiver.tokens:
            pushed.add(client.claims(receiver.tokens.pop(0)))
        return pushed.names == expected

    until(has_all, 180)  # the lease of a worker that was killed ends first
    assert pushed.names == expected
