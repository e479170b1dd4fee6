"""Fault injection with real processes: a part is killed, stopped or removed, and clients must notice little of it.

Time limits that the server guarantees are checked with a margin for a busy machine (``kit.timing.SLACK``). The
environment variable SSO_TEST_ROUNDS sets the number of repetitions; see scripts/faults.
"""

import asyncio
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import orjson

from tests.kit.load import Person
from tests.kit.server import QUICK, Server, until

ROUNDS = int(os.environ.get("SSO_TEST_ROUNDS", "1"))
TWO_WORKERS = QUICK | {"SSO_WORKERS": "2", "SSO_RATE_LOGIN": "0", "SSO_RATE_AUTHORIZE": "0"}
PEOPLE = [Person(f"person{n}@example.com", f"password of person {n}") for n in range(1, 7)]


def rounds(count: int = ROUNDS) -> Iterator[int]:
    """Counts from 0, and shows the number of the round on a terminal (scripts/faults)."""
    terminal = sys.stderr.isatty()  # false if pytest captures the output
    for number in range(count):
        if terminal:
            print(f"\nround {number + 1} of {count}: ", end="", file=sys.stderr, flush=True)
        yield number


@contextmanager
def open_folder() -> Iterator[Path]:
    """Creates a directory that the database's account can access even if the tests run as root.

    Asserts that no process of the test is left at the end.
    """
    folder = Path(tempfile.mkdtemp(prefix="sso-faults-"))
    folder.chmod(0o711)
    try:
        yield folder
        assert until(lambda: not mentioning(folder)), "processes were left behind"
    finally:
        kill(mentioning(folder))
        shutil.rmtree(folder)


@contextmanager
def serving(folder: Path, **settings: str) -> Iterator[Server]:
    """Runs a server with two workers and stops it at the end, whatever its state."""
    server = Server(folder, TWO_WORKERS | settings)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def people_document(people: Sequence[Person] = PEOPLE) -> dict[str, Any]:
    return {"users": [{"login": person.login, "password": person.password, "nick": "Ann"} for person in people]}


def add_people(server: Server) -> None:
    apply(server, people_document())


def apply(server: Server, document: dict[str, Any]) -> None:
    """Applies a document with the command line, which also reaches an embedded database."""
    (server.folder / "document.json").write_bytes(orjson.dumps(document))
    server.sso("apply", "document.json")


# Processes


def kill(pids: Iterable[int], how: signal.Signals = signal.SIGKILL) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, how)


def family(server: Server) -> set[int]:
    """Returns all processes of the server, including the detached embedded database and its keeper."""
    assert server.process is not None
    return descendants({server.process.pid} | mentioning(server.folder))


def mentioning(folder: Path) -> set[int]:
    """Returns the processes whose command line names this directory, and their descendants."""
    return descendants({pid for pid in _pids() if os.fsencode(folder) in _read(pid, "cmdline")})


def descendants(pids: set[int]) -> set[int]:
    """Returns the living processes among these, and all their descendants."""
    members = {pid for pid in pids if is_alive(pid)}
    parents = {pid: parent(pid) for pid in _pids()}
    while children := {pid for pid, parent_pid in parents.items() if parent_pid in members} - members:
        members |= children
    return members


def is_alive(pid: int) -> bool:
    """Returns False for a zombie."""
    return _stat(pid)[:1] not in ([], ["Z"], ["X"])


def parent(pid: int) -> int:
    return int((_stat(pid) or ["", "0"])[1])


def postmaster(server: Server) -> int:
    """Returns the pid of the embedded PostgreSQL, or 0 if it does not run."""
    try:
        return int((server.folder / "data/postgres/data/postmaster.pid").read_text().split()[0])
    except (FileNotFoundError, IndexError):
        return 0


def ports_of(pid: int) -> set[int]:
    """Returns the client ports of the connections that a process holds."""
    held = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            held.add(str(file.readlink()))
    return {line.client_port for line in _connections() if f"socket:[{line.inode}]" in held} - {0}


def unread(client_ports: set[int]) -> int:
    """Returns the number of bytes sent from these ports that the server has not read yet."""
    return sum(line.unread for line in _connections() if line.client_port in client_ports)


class _Connection(NamedTuple):
    """A connection as its server end sees it."""

    client_port: int
    unread: int
    inode: str


def _connections() -> list[_Connection]:
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [
        _Connection(int(line[2].rpartition(":")[2], 16), int(line[4].rpartition(":")[2], 16), line[9]) for line in lines
    ]


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _stat(pid: int) -> list[str]:
    """Returns the fields after the name: state, parent, …"""
    return _read(pid, "stat").decode(errors="replace").rpartition(")")[2].split()


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


# Direct access to the database


def sql(dsn: str, *statements: str) -> Any:
    """Runs statements and returns the value of the last one."""

    async def run() -> Any:
        connection = await asyncpg.connect(dsn, timeout=10, server_settings={"application_name": "test"})
        try:
            return [await connection.fetchval(statement) for statement in statements][-1]
        finally:
            await connection.close()

    with asyncio.Runner() as runner:
        return runner.run(run())


# Logs


def leaked(text: str, secrets: Iterable[str]) -> list[str]:
    """Returns the secrets that a text contains. A code of digits counts only as a whole word outside times of day."""
    text = re.sub(r"\d\d:\d\d:\d\d\.\d+", "", text)
    words = set(re.findall(r"\w+", text))
    return [secret for secret in secrets if secret in (words if secret.isdigit() else text)]


def logs(server: Server) -> str:
    """Returns the log texts of the server and its database."""
    return "\n".join(path.read_text() for path in server.folder.rglob("*.log*"))


def seconds_since(moment: float) -> float:
    return time.monotonic() - moment
