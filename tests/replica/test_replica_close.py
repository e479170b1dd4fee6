"""A replica ends at once, whatever it waits for, and leaves no thread and no connection behind."""

import errno
import os
import resource
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from sso.client.call import ApiCall
from sso.client.clients import AsyncSsoClient
from sso.client.credentials import ServiceClient
from sso.client.errors import ConnectionFailed
from sso.replica.copy_keeper import CopyKeeper
from sso.replica.feed import ANSWER_S, ChangesPage, Feed
from sso.replica.replica import POLL_S, SIDE_ANSWER_S, Replica
from sso.replica.request_thread import RequestThread
from sso.replica.snapshot_file import SnapshotFile
from tests.kit.server import LIMIT_S, until
from tests.replica.conftest import Game

SYN_SENT = "02"  # in /proc/net/tcp: the kernel is connecting


def new_replica(server: str, **options: Any) -> Replica:
    return Replica(40, server=server, client_id="tanks-server", client_secret="a secret of the client", **options)


def new_feed(requests: RequestThread) -> Feed:
    return Feed(requests, "http://127.0.0.1:9", 40, ServiceClient("tanks-server", "a secret of the client"))


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
    for _ in range(2):  # the first one has released the lock of its folder
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


def test_replica_that_was_closed_cannot_be_started() -> None:
    replica = new_replica("http://127.0.0.1:9")
    replica.close()
    try:
        with pytest.raises(RuntimeError, match="closed"):
            replica.start()
        assert replica_threads() == []
    finally:
        replica.close()


def test_replica_that_is_closed_while_it_starts_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    replica = new_replica("http://127.0.0.1:9")
    monkeypatch.setattr(CopyKeeper, "restore", lambda _: replica.close())
    with pytest.raises(RuntimeError, match="closed"):
        replica.start()
    assert replica_threads() == []


def test_second_start_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with held_response() as replica:
        monkeypatch.setattr(CopyKeeper, "restore", lambda _: pytest.fail("it reads the older copy on disk"))
        with pytest.raises(RuntimeError, match="once"):
            replica.start()
        assert len(replica_threads()) == 2
        replica.close()


def test_replica_that_cannot_use_its_copy_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: SnapshotFile) -> None:
        raise KeyError("data")

    monkeypatch.setattr(SnapshotFile, "read", fail)
    with pytest.raises(KeyError), new_replica("http://127.0.0.1:9", data_dir=tmp_path):
        pass
    assert replica_threads() == []
    new_replica("http://127.0.0.1:9", data_dir=tmp_path).close()


def test_replica_that_can_open_no_file_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    errors: list[int | None] = []
    run = trio.run

    def start() -> None:
        try:
            new_replica("http://127.0.0.1:9").start()
        except OSError as error:
            errors.append(error.errno)

    def run_without_files(*arguments: Any) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
        try:
            run(*arguments)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    monkeypatch.setattr(trio, "run", run_without_files)
    starting = threading.Thread(target=start, daemon=True)
    starting.start()
    starting.join(LIMIT_S)
    assert errors == [errno.EMFILE]
    assert replica_threads() == []


def test_thread_that_has_not_begun_yet_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, closing, may_run, run = threading.Event(), threading.Event(), threading.Event(), trio.run

    def run_later(*arguments: Any) -> None:
        begun.set()
        may_run.wait()
        run(*arguments)

    def close() -> None:
        closing.set()
        requests.close()

    monkeypatch.setattr(trio, "run", run_later)
    requests = RequestThread()
    threads = [threading.Thread(target=work, daemon=True) for work in (requests.start, close)]
    threads[0].start()
    assert begun.wait(LIMIT_S)
    threads[1].start()
    assert closing.wait(LIMIT_S)
    may_run.set()
    for thread in threads:
        thread.join(LIMIT_S)
    assert replica_threads() == []


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # that is what this test does
def test_forked_process_neither_sends_requests_nor_ends_those_of_its_parent() -> None:
    requests = RequestThread()
    feed = new_feed(requests)
    requests.start()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(int(LIMIT_S))
            with pytest.raises(ConnectionFailed, match="the replica was started in another process"):
                feed.definition()
            requests.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(ConnectionFailed, match="connect"):
        feed.definition()
    requests.close()
    assert replica_threads() == []


def test_request_that_somebody_waits_for_has_a_limit_of_its_own(game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: set[tuple[str, float | None]] = set()
    send = RequestThread.send

    def record(requests: RequestThread, client: AsyncSsoClient, call: ApiCall[Any]) -> Any:
        limits.add((call.path.rpartition("/")[2] + "?" + ",".join(call.query), call.timeout_s))
        return send(requests, client, call)

    monkeypatch.setattr(RequestThread, "send", record)
    with game.replica() as replica:
        assert not replica.check("999999996", "build")
        assert until(lambda: ("changes?after,wait", ANSWER_S + POLL_S) in limits)
    assert ("users?after,ids", SIDE_ANSWER_S) in limits
    assert ("users?after,limit", ANSWER_S) in limits
