"""A real server: the program itself in a process of its own, on a port of its own."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import httpx
import orjson
import trio

from sso.config import load
from sso.services import open_services
from sso.state.apply import Applier
from sso.state.document import parse

START_S = 30
# The cheapest hash and no limit of right passwords, for tests that are not about them.
QUICK = {"SSO_ARGON2_TIME": "1", "SSO_ARGON2_KIB": "8", "SSO_RATE_ACCOUNT": "0"}
_SSO = (sys.executable, "-m", "sso")
_of_this_run: dict[str, str] = {}


def by_default(**settings: str) -> None:
    """From now on, for every process that is not told something else."""
    _of_this_run.update(settings)


def clean_environment(**settings: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SSO_")}
    return kept | _of_this_run | settings


class Server:
    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self.folder = folder
        self.settings = {"SSO_BIND": "127.0.0.1:0", "SSO_DATA_DIR": str(folder / "data"), **settings}
        self.base_url = ""
        self.process: subprocess.Popen[str] | None = None
        self._log: IO[str] | None = None

    def start(self) -> None:
        """Returns when it is ready."""
        self._log = (self.folder / "server.log").open("a")
        self.process = subprocess.Popen(
            [*_SSO, "serve"],
            env=clean_environment(**self.settings),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"ready at (\S+)", line)
        if not found:
            self.stop()
            raise AssertionError(f"the server did not start: {self.log()[-3000:]}")
        self.base_url = found[1]
        # After a restart it shall be found where it was.
        self.settings["SSO_BIND"] = self.base_url.removeprefix("http://")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(20)
        finally:
            assert self.process.stdout is not None
            assert self._log is not None
            self.process.stdout.close()
            self._log.close()

    def log(self) -> str:
        """The lines that are complete: another may be on its way."""
        written = (self.folder / "server.log").read_text()
        return written[: written.rfind("\n") + 1]

    def log_events(self, event: str) -> list[dict[str, Any]]:
        lines = [line for line in self.log().splitlines() if line.startswith("{")]
        return [entry for entry in map(orjson.loads, lines) if entry["event"] == event]

    def workers(self) -> list[int]:
        """The pids of the workers that live now."""
        assert self.process is not None
        try:
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        except OSError:  # it has ended
            return []
        return [int(pid) for pid in children if _name(pid).startswith("sso-worker")]

    def sso(self, *arguments: str, stdin: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a verb of the program against the same data."""
        done = subprocess.run(
            [*_SSO, *arguments],
            env=clean_environment(**self.settings),
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        return done

    def apply(self, document: dict[str, Any]) -> None:
        """What `sso apply` does, without the second that a new process takes."""
        settings = load(None, self.settings)

        async def run() -> None:
            async with open_services(settings, self.settings["SSO_DATABASE_URL"]) as services:
                applier = Applier(services.database, services.hasher, services.keyring)
                await applier.apply(parse(document))

        trio.run(run)

    def client(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.base_url, timeout=20, **options)


def _name(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


@contextmanager
def running(folder: Path, **settings: str) -> Iterator[Server]:
    server = Server(folder, settings)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def until(condition: Any, seconds: float = 10.0) -> Any:
    """Wait for something to become true; what it was at the end otherwise."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return value
