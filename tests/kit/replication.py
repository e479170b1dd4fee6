"""A PostgreSQL primary and its streaming standbys on loopback ports, which a test may kill, stop and promote."""

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from sso.db.embedded.binaries import environment, find_binaries, newest_install
from sso.db.embedded.files import Account, postgres_account
from sso.db.embedded.start import options
from tests.kit.ports import free_port
from tests.kit.postgres import fetch
from tests.kit.prepared_data import copy_prepared

READY_S = 60
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "dynamic_shared_memory_type": "mmap",  # a killed server would leave other shared memory behind
    "hot_standby": "on",
    "wal_level": "replica",
    "max_wal_senders": "5",
    "wal_retrieve_retry_interval": "200ms",
    "log_min_messages": "fatal",
}
ACCESS = "host all sso 127.0.0.1/32 trust\nhost replication sso 127.0.0.1/32 trust\n"
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class Node:
    """One server. ``start`` may be called again after it was killed."""

    def __init__(self, home: Path, account: Account, settings: Mapping[str, str] = {}) -> None:
        self.home = home
        self.data = home / "data"
        self.port = free_port()
        self.settings = dict(settings)
        self.started: list[Node] = [self]  # shared with its standbys
        self._account = account
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def dsn(self) -> str:
        return f"postgresql://sso@{self.address}/sso?sslmode=disable"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> Self:
        """Starts it and waits until it accepts connections. It ends with this process."""
        # The death signal is sent when the thread that forks ends.
        assert threading.current_thread() is threading.main_thread()
        settings = SETTINGS | self.settings | {"port": str(self.port)}
        as_root = os.geteuid() == 0
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        with (self.home / "postgres.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(find_binaries(self._account).bin / "postgres"), "-D", str(self.data), *options(settings)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self._account.uid if as_root else None,
                group=self._account.gid if as_root else None,
                extra_groups=[] if as_root else None,
                cwd="/",
                env=environment(),
                umask=0o077,
                start_new_session=True,
                preexec_fn=lambda: _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT, 0, 0, 0),
            )
        self._wait_until_ready()
        return self

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + READY_S
        while time.monotonic() < end:
            assert self._process is not None
            assert self._process.poll() is None, (self.home / "postgres.log").read_text()[-2000:]
            with suppress(OSError, IndexError):
                if (self.data / "postmaster.pid").read_text().splitlines()[7].strip() in ("ready", "standby"):
                    return
            time.sleep(0.02)
        raise AssertionError("PostgreSQL did not start in time")

    def promote(self) -> None:
        """Returns when it accepts writes."""
        assert fetch(self.dsn, "SELECT pg_promote(true, 30)") is True

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Ends the postmaster, and waits until its other processes have noticed it and ended as well."""
        if self._process is None or self._process.poll() is not None:
            return
        processes = self.processes()
        self._process.send_signal(how)
        self._process.wait(READY_S)
        end = time.monotonic() + READY_S
        while any(_is_running(pid) for pid in processes):
            assert time.monotonic() < end, "a process of PostgreSQL does not end"
            time.sleep(0.01)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def processes(self) -> list[int]:
        """Returns the pids of the postmaster and its children."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [self.pid, *map(int, children)]

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Stops all its processes: the kernel still accepts connections, but nothing answers."""
        stopped = self.processes()
        for pid in stopped:
            _signal(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in stopped:
                _signal(pid, signal.SIGCONT)

    def standby(self, name: str, port: int = 0) -> "Node":
        """Returns a running standby, on the given port."""
        settings = {key: value for key, value in self.settings.items() if key != "primary_conninfo"}
        standby = Node(self.home.with_name(name), self._account, settings)
        standby.port = port or standby.port
        standby.started = self.started
        standby.started.append(standby)
        standby.home.mkdir(mode=0o711)
        subprocess.run(
            [
                str(newest_install() / "bin/pg_basebackup"),
                *("--checkpoint=fast", "--wal-method=stream", "--no-sync"),
                *("-h", "127.0.0.1", "-p", str(self.port), "-U", "sso", "-D", str(standby.data)),
            ],
            env=environment(),
            check=True,
            capture_output=True,
        )
        (standby.data / "standby.signal").touch()
        standby.settings["primary_conninfo"] = f"host=127.0.0.1 port={self.port} user=sso application_name={name}"
        _give(standby.data, self._account)
        return standby.start()

    def wait_for_standby(self, standby: "Node") -> None:
        """Waits until the standby has replayed all that this server has written so far."""
        position = fetch(self.dsn, "SELECT pg_current_wal_flush_lsn()::text")
        end = time.monotonic() + READY_S
        while not fetch(standby.dsn, f"SELECT pg_last_wal_replay_lsn() >= '{position}'::pg_lsn"):
            assert time.monotonic() < end, "the standby does not follow"
            time.sleep(0.02)


def dsn_of(*nodes: Node, parameters: str = "sslmode=disable") -> str:
    """Returns a URL with all hosts."""
    return f"postgresql://sso@{','.join(node.address for node in nodes)}/sso?{parameters}"


@contextmanager
def replication(
    standbys: int = 1, settings: Mapping[str, str] = {}, parent: Path | None = None
) -> Iterator[list[Node]]:
    """Yields a primary with a migrated database and its standbys. All are stopped at the end."""
    folder = Path(tempfile.mkdtemp(prefix="sso-replication-", dir=parent))
    folder.chmod(0o711)
    account = postgres_account(folder)
    primary = Node(folder / "node0", account, settings)
    try:
        primary.home.mkdir(mode=0o711)
        copy_prepared(primary.data)
        (primary.data / "pg_hba.conf").write_text(ACCESS)
        _give(primary.data, account)
        primary.start()
        yield [primary, *(primary.standby(f"node{number}") for number in range(1, standbys + 1))]
    finally:
        for node in reversed(primary.started):
            node.kill(signal.SIGQUIT)
        shutil.rmtree(folder)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _give(folder: Path, account: Account) -> None:
    """Makes the account the owner of the folder and all in it."""
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, *account)
