"""``sso serve --replace``: a service takes over from the running one, which ends, and no request is lost."""

import os
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor as Pool
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import trio

from tests.faults import open_folder
from tests.kit.browser import new_user
from tests.kit.held import GET_GSID, Connection, Game, Player, ask_once, new_address, new_game, new_games, rows_of
from tests.kit.load import PAUSE_S
from tests.kit.postgres import Postgres
from tests.kit.server import QUICK, Server, run_sso, running, until

LIMITS = {"SSO_RATE_GETGSID": "0", "SSO_RATE_LOGIN": "0", "SSO_GSID_HOLD_S": "60"}
pytestmark = pytest.mark.timeout(180)


@contextmanager
def started(server: Server, *options: str) -> Iterator[Server]:
    server.folder.mkdir(exist_ok=True)
    server.start(*options)
    try:
        yield server
    finally:
        server.stop()


def successor(old: Server, **settings: str) -> Server:
    """A server with the same settings; its log is in another folder."""
    return Server(old.folder / "new", old.settings | settings)


def refused(old: Server, *options: str, **settings: str) -> str:
    """Returns the error of a service that must not start."""
    done = run_sso(old.folder, "serve", *options, **old.settings | settings)
    assert done.returncode == 1
    assert done.stdout == ""
    return done.stderr


class Load:
    """Clients that send requests until they are stopped, on new connections and on kept ones."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._stop = trio.Event()
        self.statuses: Counter[int] = Counter()
        self.closed_while_idle = 0

    async def on_new_connections(self) -> None:
        address = new_address()
        while not self._stop.is_set():
            self.statuses[(await ask_once(self._server, GET_GSID, {}, address=address)).status] += 1
            await trio.sleep(PAUSE_S)

    async def on_kept_connections(self) -> None:
        address = new_address()
        while not self._stop.is_set():
            async with await Connection.open(self._server, address) as connection:
                await self._use(connection)

    async def _use(self, connection: Connection) -> None:
        """A server may close a connection between two requests; a client then repeats the request on a new one."""
        requests = 0
        while not self._stop.is_set():
            answer = await connection.ask(GET_GSID, {})
            if answer.status == 0 and requests:
                self.closed_while_idle += 1
                return
            self.statuses[answer.status] += 1
            requests += 1
            if answer.headers.get("connection") == "close":
                return
            await trio.sleep(PAUSE_S)

    async def wait_for(self, count: int) -> None:
        """Waits until so many more requests were answered."""
        target = self.statuses.total() + count
        assert await trio.to_thread.run_sync(until, lambda: self.statuses.total() >= target, 60)

    def stop(self) -> None:
        self._stop.set()


@pytest.fixture
def busy(postgres_server: Postgres, tmp_path: Path) -> Iterator[tuple[Server, Player]]:
    settings = QUICK | LIMITS | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_WORKERS": "2"}
    with running(tmp_path, **settings) as server:
        yield server, Player(server, new_user(server))


async def test_no_request_and_no_login_is_lost_while_a_service_is_replaced(busy: tuple[Server, Player]) -> None:
    old, player = busy
    games = await new_games(old, 10)
    results: list[str] = []

    async def wait_for_login(game: Game) -> None:
        results.append((await game.poll_until_result()).outcome)

    new, load = successor(old), Load(old)
    async with trio.open_nursery() as nursery, rows_of(old) as rows:
        for game in games:
            nursery.start_soon(wait_for_login, game)
        for client in (load.on_new_connections, load.on_kept_connections) * 3:
            nursery.start_soon(client)
        for game in games:
            await rows.until_polled(game.gsid)
        await load.wait_for(30)
        new.folder.mkdir()
        nursery.start_soon(player.confirm_all, games[:5])
        await trio.to_thread.run_sync(new.start, "--replace")
        try:
            assert await trio.to_thread.run_sync(old.process.wait, 60) == 0  # type: ignore[union-attr]
            await load.wait_for(30)
            await player.confirm_all(games[5:])
            load.stop()
            await trio.to_thread.run_sync(until, lambda: len(results) == len(games), 30)
        finally:
            load.stop()
            await trio.to_thread.run_sync(new.stop)
    assert Counter(results) == {"OK": len(games)}
    assert set(load.statuses) == {200}
    assert load.statuses.total() >= 60


@pytest.fixture
def open_directory() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


def test_replacing_service_shares_the_embedded_database_and_the_unix_socket(open_directory: Path) -> None:
    path = open_directory / "sso.sock"

    def status() -> int:
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), timeout=60) as client:
            return client.get("http://localhost/readyz").status_code

    with running(open_directory, **QUICK, SSO_METRICS_BIND="127.0.0.1:0") as first:
        bind = f"{first.settings['SSO_BIND']},unix:{path}"
        assert first.stop() == 0
        first.settings["SSO_BIND"] = bind
        first.start()
        first.settings["SSO_BIND"] = bind
        assert status() == 200
        inode = path.lstat().st_ino
        with started(successor(first), "--replace") as second:
            told = second.process.stdout.readline()  # type: ignore[union-attr]
            assert told == f"The old service (process {first.process.pid}) finishes its requests and ends.\n"  # type: ignore[union-attr]
            assert first.process.wait(60) == 0  # type: ignore[union-attr]
            assert path.lstat().st_ino == inode
            assert status() == 200
        assert not path.exists()
    assert list((open_directory / "data").glob("serve-*")) == []


@pytest.fixture(scope="module")
def old(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service that no other one replaces, with an address and a Unix socket."""
    folder = tmp_path_factory.mktemp("old")
    path = folder / "sso.sock"
    settings = QUICK | {"SSO_DATABASE_URL": postgres_server.fresh(), "SSO_BIND": f"127.0.0.1:0,unix:{path}"}
    with started(Server(folder, settings)) as server:
        server.settings["SSO_BIND"] += f",unix:{path}"
        yield server
    assert not path.exists()


def test_new_service_that_does_not_start_leaves_the_old_one_in_place(old: Server) -> None:
    (old.folder / "broken.json").write_text("[]")
    assert "broken.json" in refused(old, "--replace", "--apply", "broken.json")
    assert (old.folder / "sso.sock").is_socket()
    with old.client() as client:
        assert client.get("/readyz").status_code == 200


def test_taken_address_is_reported_unless_the_service_is_replaced(old: Server, tmp_path: Path) -> None:
    error = refused(old)
    assert "the address is already in use" in error
    assert "--replace" in error
    # Another data directory is another service: its addresses are not taken over.
    error = refused(old, "--replace", SSO_DATA_DIR=str(tmp_path / "other"))
    assert "the address is already in use" in error
    assert "--replace" not in error
    with old.client() as client:
        assert client.get("/readyz").status_code == 200


def test_without_a_running_service_replace_starts_as_usual(postgres_server: Postgres, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    stale = data / "serve-00000000.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as killed:
        killed.bind(str(stale))
    with started(Server(tmp_path, QUICK | {"SSO_DATABASE_URL": postgres_server.fresh()}), "--replace") as server:
        assert not stale.exists()
        with server.client() as client:
            assert client.get("/readyz").status_code == 200


def test_draining_service_refuses_connections(postgres_server: Postgres, tmp_path: Path) -> None:
    """The process that hands the sockets over stops first: it must not keep them open while workers drain."""
    settings = QUICK | LIMITS | {"SSO_DATABASE_URL": postgres_server.fresh()}
    with running(tmp_path, **settings) as server:

        async def hold_and_stop() -> str:
            game = await new_game(server)
            async with rows_of(server) as rows, await game.begin_poll() as poll:
                await rows.until_polled(game.gsid)
                os.kill(server.process.pid, 15)  # type: ignore[union-attr]
                return (await poll.receive()).outcome

        assert trio.run(hold_and_stop) == "RETRY"

        def is_refused() -> bool:
            try:
                httpx.get(f"{server.base_url}/healthz", timeout=60)
            except httpx.ConnectError:
                return True
            except httpx.HTTPError:
                return False
            return False

        assert until(is_refused)
        assert server.stop() == 0


def test_service_that_cannot_be_asked_to_stop_is_named_with_the_command(
    postgres_server: Postgres, tmp_path: Path
) -> None:
    """A release that does not know the request closes the connection without an answer."""
    data = tmp_path / "data"
    data.mkdir(0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other, Pool() as pool:
        other.bind(str(data / "serve-00000000.sock"))
        other.listen()
        pool.submit(answer_as_an_older_release, other)
        server = Server(tmp_path, QUICK | {"SSO_DATABASE_URL": postgres_server.fresh()})
        with started(server, "--replace") as new:
            told = new.process.stdout.readline()  # type: ignore[union-attr]
    assert told == "The old service (process 4711) is still running. Stop it: kill 4711\n"


def answer_as_an_older_release(listener: socket.socket) -> None:
    for expected in (b"listeners", b"stop"):
        connection, _ = listener.accept()
        with connection:
            assert connection.recv(64) == expected
            if expected == b"listeners":
                connection.send(b'{"pid": 4711, "binds": []}')


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes of another account")
def test_listeners_are_not_sent_to_another_account(old: Server) -> None:
    (path,) = (old.folder / "data").glob("serve-*.sock")
    script = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect(sys.argv[1]);"
        "s.send(b'listeners'); print(len(socket.recv_fds(s, 100, 10)[1]))"
    )
    command = ["/usr/bin/python3", "-I", "-c", script, str(path)]
    opened = {place: place.stat().st_mode for place in (path, path.parent, old.folder)}
    try:
        for place in opened:
            place.chmod(0o777)
        done = subprocess.run(command, user="nobody", cwd="/", capture_output=True, text=True, check=False)
    finally:
        for place, mode in opened.items():
            place.chmod(mode)
    assert "PermissionError" in done.stderr or done.stdout == "0\n"
    assert done.stdout != "0\n" or until(lambda: old.log_events("handover.refused"))
