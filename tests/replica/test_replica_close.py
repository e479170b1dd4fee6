"""A replica ends at once, whatever it waits for, and leaves no thread and no connection behind."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from sso.replica.feed import ChangesPage, Feed
from sso.replica.replica import Replica
from tests.kit.server import LIMIT_S, until
from tests.replica.conftest import Game

SYN_SENT = "02"  # in /proc/net/tcp: the kernel is connecting


def new_replica(server: str, **options: Any) -> Replica:
    return Replica(40, server=server, client_id="tanks-server", client_secret="a secret of the client", **options)


def replica_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("replica")]


@contextmanager
def listening(backlog: int = 10) -> Iterator[tuple[socket.socket, int]]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(backlog)
        listener.settimeout(LIMIT_S)
        yield listener, listener.getsockname()[1]


@contextmanager
def held_connection(scheme: str) -> Iterator[Replica]:
    """The service accepts the connection, gets the first bytes, and does not answer."""
    with listening() as (listener, port):
        replica = new_replica(f"{scheme}://127.0.0.1:{port}")
        replica.start()
        with listener.accept()[0] as connection:
            connection.settimeout(LIMIT_S)
            assert connection.recv(1)
            yield replica
            with suppress(ConnectionResetError):
                while connection.recv(65536):
                    pass


def held_response() -> AbstractContextManager[Replica]:
    return held_connection("http")


def handshake() -> AbstractContextManager[Replica]:
    return held_connection("https")


@contextmanager
def connecting() -> Iterator[Replica]:
    """The host does not answer at all: the queue of its listening socket is full."""
    with listening(backlog=0) as (_, port), socket.create_connection(("127.0.0.1", port)):
        replica = new_replica(f"http://127.0.0.1:{port}")
        replica.start()
        assert until(lambda: is_connecting(port))
        yield replica
        assert not is_connecting(port)


def is_connecting(port: int) -> bool:
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[2] == f"0100007F:{port:04X}" and row[3] == SYN_SENT for row in rows)


@contextmanager
def looking_up() -> Iterator[Replica]:
    """The name server does not answer."""
    asked, may_answer, resolve = threading.Event(), threading.Event(), socket.getaddrinfo

    def look_up(host: Any, port: Any, family: int = 0, kind: int = 0, protocol: int = 0, flags: int = 0) -> Any:
        if flags & socket.AI_NUMERICHOST:  # needs no name server
            return resolve(host, port, family, kind, protocol, flags)
        asked.set()
        may_answer.wait()
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", look_up)
        replica = new_replica("http://sso.example.com")
        replica.start()
        assert asked.wait(LIMIT_S)
        yield replica
        may_answer.set()


WAITING = (held_response, handshake, connecting, looking_up)


@pytest.mark.parametrize("waiting", WAITING, ids=lambda waiting: waiting.__name__)
def test_replica_that_waits_for_the_service_ends(waiting: Callable[[], AbstractContextManager[Replica]]) -> None:
    with capture_logs() as logs, waiting() as replica:
        replica.close()
        assert replica_threads() == []
    assert logs == []


def test_replica_ends_while_the_service_holds_its_request(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    held, changes = threading.Event(), Feed.changes

    def hold(feed: Feed, after: str, wait_s: int) -> ChangesPage:
        if wait_s:
            held.set()
        return changes(feed, after, wait_s)

    monkeypatch.setattr(Feed, "changes", hold)
    with game.replica():
        assert held.wait(LIMIT_S)
    assert replica_threads() == []


def test_replica_can_be_closed_several_times(tmp_path: Path) -> None:
    with held_response() as replica:
        closing = [threading.Thread(target=replica.close) for _ in range(3)]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()
        replica.close()
        assert replica_threads() == []
    for _ in range(2):  # the first one has given its folder back
        unused = new_replica("http://127.0.0.1:9", data_dir=tmp_path)
        unused.close()
        unused.close()


def test_thread_that_waits_for_the_first_copy_continues_when_the_replica_is_closed() -> None:
    with held_response() as replica:
        results: list[bool] = []
        waiting = threading.Thread(target=lambda: results.append(replica.wait_until_ready()), daemon=True)
        waiting.start()
        replica.close()
        waiting.join(LIMIT_S)
        assert results == [False]
