"""A client with one stream that it polls and one that is pushed to it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.admin.conftest import root, studio
from tests.kit.oauth import close_all
from tests.kit.server import Server, until
from tests.kit.signals import POLL, PUSH, PushReceiver, SignalClient, push_receiver, signal_client

__all__ = ["root", "studio"]


@pytest.fixture(scope="module", autouse=True)
def _closed_afterwards() -> Iterator[None]:
    yield
    close_all()


@dataclass
class BothReceivers:
    """What the client has got in both ways, about all users."""

    client: SignalClient
    polled_stream: str
    pushed_stream: str
    receiver: PushReceiver
    polled: list[dict[str, Any]] = field(default_factory=list)
    pushed: list[dict[str, Any]] = field(default_factory=list)

    def about(self, user_id: str, count: int) -> list[dict[str, Any]]:
        """Waits for so many events about a user in both streams; they are the same ones in the same order.

        ``txn`` tells which of them belong together; ids are different in each stream.
        """

        def polled() -> list[dict[str, Any]]:
            if len(_about(self.polled, user_id)) < count:
                self.polled += self.client.take(self.polled_stream, returnImmediately=True)
            return _about(self.polled, user_id)

        def pushed() -> list[dict[str, Any]]:
            self.pushed += [self.client.claims(token) for token in self.receiver.tokens[len(self.pushed) :]]
            return _about(self.pushed, user_id)

        until(lambda: len(polled()) >= count)
        until(lambda: len(pushed()) >= count)
        events, others = polled(), pushed()
        assert [_without_id(claims) for claims in events] == [_without_id(claims) for claims in others]
        assert not {claims["jti"] for claims in events} & {claims["jti"] for claims in others}
        return events


@pytest.fixture(scope="module")
def both(server: Server) -> Iterator[BothReceivers]:
    client = signal_client(server)
    with push_receiver() as receiver:
        polled = client.add_stream(delivery={"method": POLL})
        delivery = {"method": PUSH, "endpoint_url": receiver.url, "authorization_header": "Bearer of-the-receiver"}
        yield BothReceivers(client, polled, client.add_stream(delivery=delivery), receiver)
        for stream_id in (polled, client.call("GET", "stream").json()[1]["stream_id"]):
            assert client.call("DELETE", f"stream?stream_id={stream_id}").status_code == 204


def _about(events: list[dict[str, Any]], user_id: str) -> list[dict[str, Any]]:
    return [claims for claims in events if user_id in _names(claims["sub_id"])]


def _names(subject: dict[str, Any]) -> tuple[Any, ...]:
    user = subject.get("user", subject)
    return user.get("sub"), user.get("email")


def _without_id(claims: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in claims.items() if name != "jti"}
