"""Runs PostgreSQL for the time of one operation: the recovery of a backup, or the upgrade of a database.

Unlike the PostgreSQL that ``join`` starts, it is a child of this process, ends with it, and has another port, so that
no other command uses it.
"""

import contextlib
import ctypes
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct

from sso.db.embedded.access import write_access_rules
from sso.db.embedded.binaries import environment
from sso.db.embedded.files import Account, EmbeddedError, Lock, open_log
from sso.db.embedded.paths import socket_directory
from sso.db.embedded.start import PAUSE_S, failure_reason, options

STOP_S = 60
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


@contextlib.contextmanager
def unused(home: Path) -> Iterator[Lock]:
    """Holds the locks that a start of PostgreSQL needs. Raises EmbeddedError if it is running or starting."""
    with Lock(home / "start.lock") as starting, Lock(home / "running.lock") as running:
        if not (starting.take(fcntl.LOCK_EX) and running.take(fcntl.LOCK_EX)):
            raise EmbeddedError(f"PostgreSQL in {home} is running: stop the service and other sso commands first")
        yield running


class TemporaryServer(Struct, frozen=True):
    home: Path
    process: "subprocess.Popen[bytes]"
    dsn: str
    _log_start: int

    def check(self) -> None:
        """Raises EmbeddedError if PostgreSQL has ended."""
        if self.process.poll() is not None:
            raise EmbeddedError(failure_reason(self.home, self._log_start))

    def wait_until_ready(self) -> None:
        """Waits until it accepts connections; the replay of a long WAL may take any time."""
        status = self._data / "postmaster.pid"
        while True:
            self.check()
            with contextlib.suppress(OSError, IndexError):
                if status.read_text().splitlines()[7].strip() == "ready":
                    return
            time.sleep(PAUSE_S)

    @property
    def _data(self) -> Path:
        arguments = self.process.args
        assert isinstance(arguments, list)
        return Path(arguments[2])


@contextlib.contextmanager
def temporary_server(
    bin_directory: Path, home: Path, data: Path, account: Account, running: Lock, port: int, settings: Mapping[str, str]
) -> Iterator[TemporaryServer]:
    socket_dir = socket_directory(home, account)
    quoted = str(socket_dir).replace('"', '""')
    everything = {**settings, "listen_addresses": "", "port": str(port), "unix_socket_directories": f'"{quoted}"'}
    write_access_rules(data, account)
    (data / "postmaster.pid").unlink(missing_ok=True)  # we hold the locks: no process of PostgreSQL exists
    log = open_log(home)
    as_root = os.geteuid() == 0
    try:
        log_start = os.lseek(log, 0, os.SEEK_END)
        process = subprocess.Popen(  # noqa: S603 - binaries of PostgreSQL, with arguments made here
            [str(bin_directory / "postgres"), "-D", str(data), *options(everything)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(running.fd,),
            user=account.uid if as_root else None,
            group=account.gid if as_root else None,
            extra_groups=[] if as_root else None,
            cwd="/",
            env=environment(),
            umask=0o077,
            start_new_session=True,  # Ctrl-C must not reach it
            preexec_fn=_end_with_parent,
        )
    finally:
        os.close(log)
    try:
        dsn = f"postgresql://sso@/sso?host={quote(str(socket_dir), safe='')}&port={port}"
        yield TemporaryServer(home, process, dsn, log_start)
    finally:
        _stop(process)


def _end_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGINT)  # a fast shutdown, with a checkpoint
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
