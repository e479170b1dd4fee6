"""A real NATS server, from Debian's package nats-server."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.ports import free_port

UNPACKED = Path(__file__).parents[2] / ".nats/usr/sbin"  # by scripts/test
PROGRAM = shutil.which("nats-server", path=f"{os.environ.get('PATH', '')}:/usr/sbin:{UNPACKED}")
START_S = 60.0

needs_nats = pytest.mark.skipif(PROGRAM is None, reason="nats-server is not installed: apt-get install nats-server")


class NatsServer:
    def __init__(self, *options: str, scheme: str = "nats", credentials: str = "") -> None:
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.url = f"{scheme}://{credentials}localhost:{self.port}"

    def start(self) -> None:
        assert PROGRAM is not None
        command = [PROGRAM, "-a", "127.0.0.1", "-p", str(self.port), *self._options]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + START_S
        while not self._accepts():
            assert self._process.poll() is None, f"{' '.join(command)} ended with {self._process.returncode}"
            assert time.monotonic() < end, "nats-server does not accept connections"
            time.sleep(0.02)

    def _accepts(self) -> bool:
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", self.port)) == 0

    def pause(self) -> None:
        """Returns when all threads have stopped."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        tasks = Path(f"/proc/{self._process.pid}/task")
        end = time.monotonic() + START_S
        while any(_state(task) != "T" for task in tasks.iterdir()):
            assert time.monotonic() < end, "nats-server does not stop"
            time.sleep(0.005)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _state(task: Path) -> str:
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # the thread has ended
        return "T"


@contextmanager
def nats_server(*options: str | Path, scheme: str = "nats", credentials: str = "") -> Iterator[NatsServer]:
    server = NatsServer(*map(str, options), scheme=scheme, credentials=credentials)
    server.start()
    try:
        yield server
    finally:
        server.kill()
