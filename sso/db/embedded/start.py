"""Starts an embedded PostgreSQL, and finds out whether one is running."""

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from sso.db.embedded.access import claim_files, write_access_rules
from sso.db.embedded.binaries import Binaries, check_version, environment, find_binaries
from sso.db.embedded.files import (
    Account,
    EmbeddedError,
    Lock,
    give,
    make_directory,
    nobody,
    open_file,
    open_log,
    sync,
)
from sso.db.embedded.paths import SOCKET_NAME, socket_directory
from sso.db.embedded.wal_archive import archive_settings

KEEPER = Path(__file__).with_name("keeper.py")
ORPHAN_GRACE_S = 1.0  # for the other processes of a killed PostgreSQL to exit by themselves
PAUSE_S = 0.01

SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "max_connections": "300",  # for 33 workers; for half of them while one service replaces another
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "timezone": "UTC",
    "jit": "off",
    # For a small machine: few processes, and little WAL to replay after a crash.
    "shared_buffers": "64MB",
    "huge_pages": "off",
    "dynamic_shared_memory_type": "mmap",  # in data/: /dev/shm can be tiny, and systemd empties it when a user logs out
    "io_method": "sync",
    "wal_level": "replica",  # for base backups and the WAL archive
    "max_wal_senders": "4",
    "min_wal_size": "32MB",
    "max_wal_size": "256MB",
    "max_logical_replication_workers": "0",
    "max_parallel_workers_per_gather": "0",
    # Failed statements are reported by their callers. Their text and parameters may hold secrets: do not log them.
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


class RunningPostgres(NamedTuple):
    pid: int
    socket_dir: Path


def find_running(home: Path) -> RunningPostgres | None:
    """Returns the PostgreSQL of a directory, None if it does not accept connections."""
    try:
        lines = (home / "data/postmaster.pid").read_text().splitlines()
    except OSError:
        return None
    if len(lines) < 8 or lines[7].strip() != "ready":
        return None
    running = RunningPostgres(int(lines[0]), Path(lines[4]))
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        try:
            client.connect(str(running.socket_dir / SOCKET_NAME))  # a killed postmaster leaves a file that says "ready"
        except BlockingIOError:
            pass  # its backlog is full, so it is running
        except OSError:
            return None
    return running


def ensure_running(home: Path, deadline: float) -> Path:
    """Starts PostgreSQL unless it is running, waits until it accepts connections, and returns its socket directory."""
    if postgres := find_running(home):
        return postgres.socket_dir
    with Lock(home / "start.lock") as starting:
        while not starting.take(fcntl.LOCK_EX):
            pause(deadline, f"another process is still starting PostgreSQL in {home}")
        log_start = None
        orphans_until = time.monotonic() + ORPHAN_GRACE_S
        while not (postgres := find_running(home)):
            with Lock(home / "running.lock") as running:
                if running.take(fcntl.LOCK_EX):
                    if log_start is not None:
                        raise EmbeddedError(f"PostgreSQL in {home} did not start: {failure_reason(home, log_start)}")
                    log_start = start(home, running)
                elif log_start is None and time.monotonic() > orphans_until:
                    _kill_orphans(home, running)
                    orphans_until = time.monotonic() + ORPHAN_GRACE_S
            if time.monotonic() > deadline:
                raise EmbeddedError(f"PostgreSQL in {home} was not ready in time: see postgres.log there")
            time.sleep(PAUSE_S)
        return postgres.socket_dir


def pause(deadline: float, reason: str) -> None:
    """Sleeps for a moment. Raises EmbeddedError with the reason for waiting after the deadline."""
    if time.monotonic() > deadline:
        raise EmbeddedError(f"{reason}; gave up waiting")
    time.sleep(PAUSE_S)


def start(home: Path, running: Lock) -> int:
    """Starts a keeper, which starts PostgreSQL, and returns the length of the log before.

    We hold ``running``, so no process of PostgreSQL exists.
    """
    account = claim_files(home)
    binaries = find_binaries(account)
    data = home / "data"
    if not data.exists():
        _check_not_interrupted(home)
        create_data(home, account, binaries, running)
    check_version(data, binaries)
    write_access_rules(data, account)
    socket_dir = socket_directory(home, account)
    # Their pids may have been reused; PostgreSQL would take that process for another postmaster.
    for stale in (data / "postmaster.pid", socket_dir / SOCKET_NAME, socket_dir / f"{SOCKET_NAME}.lock"):
        stale.unlink(missing_ok=True)

    quoted = str(socket_dir).replace('"', '""')  # the setting is a list of paths
    settings = {**SETTINGS, "unix_socket_directories": f'"{quoted}"', **archive_settings(home, account)}
    command = [str(binaries.bin / "postgres"), "-D", str(data), *options(settings)]
    log = open_log(home)
    try:
        log_start = os.lseek(log, 0, os.SEEK_END)
        with Lock(home / "users.lock") as users:  # another open file description: ours holds the lock shared
            done = subprocess.run(  # noqa: S603 - our own script, with arguments made here
                [sys.executable, "-I", "-S", str(KEEPER), str(account.uid), str(account.gid), str(users.fd), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(users.fd, running.fd),
                start_new_session=True,  # Ctrl-C must not reach it
                cwd="/",
                env=environment(),
                umask=0o077,
                check=False,
            )
    finally:
        os.close(log)
    if done.returncode:
        raise EmbeddedError(f"the keeper of PostgreSQL did not start: {failure_reason(home, log_start)}")
    return log_start


def _check_not_interrupted(home: Path) -> None:
    """An upgrade or a restore may have been killed: do not start with an empty database instead."""
    if (home / "data.upgraded").exists():
        raise EmbeddedError(f"an upgrade of {home / 'data'} was interrupted: run `sso upgrade-db` again")
    if (home / "data.restored").exists():
        raise EmbeddedError(
            f"a restore into {home} was interrupted: run `sso restore --base` again, or remove {home / 'data.restored'}"
        )


def create_data(home: Path, account: Account, binaries: Binaries, running: Lock) -> None:
    """Creates the database under another name first, so that ``data`` is either complete or missing."""
    new = home / "data.new"
    create_cluster(new, account, binaries, running)
    new.rename(home / "data")
    sync(home)


def create_cluster(new: Path, account: Account, binaries: Binaries, running: Lock) -> None:
    """Creates a data directory with an empty database; replaces what an interrupted attempt left there."""
    if new.exists():
        shutil.rmtree(new)
    if os.geteuid():
        make_directory(new, 0o700)
        _initialize(new, account, binaries, running)
        return
    # initdb needs an account with a name, and PostgreSQL's has none. Other processes of nobody do not get through
    # the outer directory, and cannot attach to initdb, because its group is another one.
    outer, creator = new.with_name(f"{new.name}.outer"), Account(nobody().uid, account.gid)
    shutil.rmtree(outer, ignore_errors=True)
    make_directory(outer, 0o710, Account(0, account.gid))
    try:
        make_directory(outer / "data", 0o700, creator)
        _initialize(outer / "data", creator, binaries, running)
        give(outer / "data", creator, account)
        (outer / "data").rename(new)
    finally:
        shutil.rmtree(outer, ignore_errors=True)


def _initialize(data: Path, account: Account, binaries: Binaries, running: Lock) -> None:
    initdb = ["initdb", "-D", str(data), "--username=sso", "--auth=reject", "--encoding=UTF8", "--locale=C"]
    initdb += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--no-sync", "--no-instructions"]
    settings = {**SETTINGS, "fsync": "off", "exit_on_error": "on"}
    single = ["postgres", "--single", "-D", str(data), *options(settings), "postgres"]
    try:
        run_binary(initdb, "", account, binaries, running)
        run_binary(single, "CREATE DATABASE sso\n", account, binaries, running)
        run_binary(["initdb", "-D", str(data), "--sync-only"], "", account, binaries, running)  # once for both commands
    except EmbeddedError:
        shutil.rmtree(data, ignore_errors=True)  # the disk may be full
        raise


def run_binary(command: list[str], text: str, account: Account, binaries: Binaries, running: Lock) -> None:
    as_root = os.geteuid() == 0
    done = subprocess.run(  # noqa: S603 - a binary of the wheel, with arguments made here
        [str(binaries.bin / command[0]), *command[1:]],
        input=text,
        text=True,
        errors="replace",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(running.fd,),  # if we are killed, the next starter waits until this process has ended
        user=account.uid if as_root else None,
        group=account.gid if as_root else None,
        extra_groups=[] if as_root else None,
        cwd="/",
        env=environment(),
        umask=0o077,
        check=False,
    )
    if done.returncode:
        raise EmbeddedError(f"{command[0]} failed in {command[command.index('-D') + 1]}: {_error_line(done.stdout)}")


def options(settings: dict[str, str]) -> list[str]:
    return [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]


def _kill_orphans(home: Path, running: Lock) -> None:
    """Kills the backends of a postmaster that was killed. They exit when they next wait, but may compute for long.

    Only a ``postgres`` that has our running.lock open is killed.
    """
    lock = os.fstat(running.fd)
    try:
        postmaster = int((home / "data/postmaster.pid").read_text().splitlines()[0])
    except (OSError, ValueError, IndexError):
        return  # a postmaster is just starting
    orphans = []
    for process in Path("/proc").iterdir():
        # Processes come and go, and /proc hides what other users run.
        with contextlib.suppress(OSError):
            if process.name.isdigit() and (process / "exe").readlink().name.startswith("postgres"):
                opened = [file.stat() for file in (process / "fd").iterdir() if file.exists()]
                if any(os.path.samestat(lock, file) for file in opened):
                    orphans.append(int(process.name))
    if postmaster in orphans:
        return  # it is starting, recovering or stopping
    for pid in orphans:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def failure_reason(home: Path, log_start: int) -> str:
    with os.fdopen(open_file(home / "postgres.log", os.O_RDONLY), "rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(log_start, size - 10_000))
        return _error_line(log.read().decode(errors="replace"))


def _error_line(output: str) -> str:
    """Returns the line of the output that names the error."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for line in lines:
        for word in ("PANIC:", "FATAL:", "error:"):
            if word in line and "the database system is" not in line:  # an error for a client that connected too early
                return line[line.index(word) :]
    return lines[-1] if lines else "no output"
