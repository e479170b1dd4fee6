"""Starting an embedded PostgreSQL, and knowing whether it runs."""

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

from sso.db.embedded.files import Account, EmbeddedError, Lock, account_of, make_directory, open_file, open_log, sync
from sso.db.embedded.places import SOCKET_NAME, Binaries, check_version, environment, find_binaries, socket_directory

KEEPER = Path(__file__).with_name("keeper.py")
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


class RunningPostgres(NamedTuple):
    pid: int
    socket_dir: Path


def find_ready(home: Path) -> RunningPostgres | None:
    """The PostgreSQL of a directory, if it accepts connections."""
    try:
        lines = (home / "data/postmaster.pid").read_text().splitlines()
    except OSError:
        return None
    if len(lines) < 8 or lines[7].strip() != "ready":
        return None
    ready = RunningPostgres(int(lines[0]), Path(lines[4]))
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        try:
            client.connect(str(ready.socket_dir / SOCKET_NAME))  # a postmaster that was killed leaves the file "ready"
        except BlockingIOError:
            pass  # its queue is full: busy, but there
        except OSError:
            return None
    return ready


def bring_up(home: Path, deadline: float) -> Path:
    """Start PostgreSQL unless it runs, wait until it accepts connections; its socket directory."""
    if ready := find_ready(home):
        return ready.socket_dir
    with Lock(home / "start.lock") as starting:
        while not starting.take(fcntl.LOCK_EX):
            pause(deadline, f"another process is still starting PostgreSQL in {home}")
        log_start = None
        patience = time.monotonic() + ORPHANS_GRACE
        while not (ready := find_ready(home)):
            with Lock(home / "running.lock") as running:
                if running.take(fcntl.LOCK_EX):
                    if log_start is not None:
                        raise EmbeddedError(f"PostgreSQL in {home} does not start: {_last_words(home, log_start)}")
                    log_start = start(home, running)
                elif log_start is None and time.monotonic() > patience:
                    _end_orphans(home, running)
                    patience = time.monotonic() + ORPHANS_GRACE
            if time.monotonic() > deadline:
                raise EmbeddedError(f"PostgreSQL in {home} was not ready in time: see postgres.log there")
            time.sleep(PAUSE)
        return ready.socket_dir


def pause(deadline: float, complaint: str) -> None:
    if time.monotonic() > deadline:
        raise EmbeddedError(f"{complaint}; gave up waiting")
    time.sleep(PAUSE)


def start(home: Path, running: Lock) -> int:
    """Let a keeper start PostgreSQL; how long the log was before. ``running`` shows that nothing of it lives yet."""
    account = account_of(home)
    binaries = find_binaries(account)
    data = home / "data"
    if not data.exists():
        create_data(home, account, binaries, running)
    check_version(data, binaries)
    socket_dir = socket_directory(home, account)
    # Their pids may belong to strangers by now, whom PostgreSQL would take for another postmaster.
    for stale in (data / "postmaster.pid", socket_dir / SOCKET_NAME, socket_dir / f"{SOCKET_NAME}.lock"):
        stale.unlink(missing_ok=True)

    listed = str(socket_dir).replace('"', '""')  # the setting is a list of paths
    settings = {**SETTINGS, "unix_socket_directories": f'"{listed}"'}
    command = [str(binaries.bin / "postgres"), "-D", str(data), *_options(settings)]
    log = open_log(home)
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
                env=environment(),
                umask=0o077,
                check=False,
            )
    finally:
        os.close(log)
    if done.returncode:
        raise EmbeddedError(f"the keeper of PostgreSQL does not start: {_last_words(home, log_start)}")
    return log_start


def create_data(home: Path, account: Account, binaries: Binaries, running: Lock) -> None:
    """Make the database under another name first: ``data`` is complete or not there."""
    new = home / "data.new"
    if new.exists():
        shutil.rmtree(new)
    make_directory(new, 0o700, account)
    # trust: the socket's directory is 0700 and belongs to the database's uid, so only that uid and root reach it.
    initdb = ["initdb", "-D", str(new), "--username=sso", "--auth=trust", "--encoding=UTF8", "--locale=C"]
    initdb += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--no-sync", "--no-instructions"]
    settings = {**SETTINGS, "fsync": "off", "exit_on_error": "on"}
    single = ["postgres", "--single", "-D", str(new), *_options(settings), "postgres"]
    try:
        run_binary(initdb, "", account, binaries, running)
        run_binary(single, "CREATE DATABASE sso\n", account, binaries, running)
        run_binary(["initdb", "-D", str(new), "--sync-only"], "", account, binaries, running)  # once for both
    except EmbeddedError:
        shutil.rmtree(new, ignore_errors=True)  # the disk may be full
        raise
    new.rename(home / "data")
    sync(home)


def run_binary(command: list[str], text: str, account: Account, binaries: Binaries, running: Lock) -> None:
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
        env=environment(),
        umask=0o077,
        check=False,
    )
    if done.returncode:
        raise EmbeddedError(f"{command[0]} failed in {command[command.index('-D') + 1]}: {_complaint(done.stdout)}")


def _options(settings: dict[str, str]) -> list[str]:
    return [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]


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
    with os.fdopen(open_file(home / "postgres.log", os.O_RDONLY), "rb") as log:
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
