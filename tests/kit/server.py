"""A real server: the program in its own process, on its own port."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import httpx
import orjson
import trio

from sso.config import load
from sso.services import Services
from tests.kit import forked_program
from tests.kit.forked_program import ForkedProcess, can_fork
from tests.kit.open_services import OpenServices, apply_document, run_once, save_accounts
from tests.kit.plain_http import PlainTransport
from tests.kit.prepared_data import prepare

T = TypeVar("T")
LIMIT_S = 60.0  # for what usually takes moments: the machine may stall for seconds
COMMAND_S = 110
# The cheapest password hash and no limit of password checks, for tests of other things.
QUICK = {"SSO_ARGON2_TIME": "1", "SSO_ARGON2_KIB": "8", "SSO_RATE_ACCOUNT": "0"}
TWO_WORKERS = {"SSO_WORKERS": "2"}
# The base URL has a port that is known after the start, and the master key is created in the data directory.
SINGLE_NODE = {"SSO_SINGLE_NODE": "1"}
# Statements may take this long, so that a machine that stalls for a moment fails no test.
SLOW_MACHINE_S = 20
SSO = (sys.executable, "-m", "sso")
# Identity providers of the tests are on this machine.
DEFAULT_SETTINGS = {"SSO_DATABASE_TIMEOUT_S": str(SLOW_MACHINE_S), "SSO_UPSTREAM_NETWORKS": "127.0.0.0/8"}


def clean_environment(**settings: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SSO_")}
    return kept | SINGLE_NODE | DEFAULT_SETTINGS | settings


def run_sso(
    folder: Path, *arguments: str, stdin: str = "", program: Sequence[str] = (), **settings: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command of the program in a folder."""
    environment = clean_environment(**settings)
    if not program and can_fork(environment):
        return forked_program.run(arguments, env=environment, cwd=folder, stdin=stdin, timeout=COMMAND_S)
    return subprocess.run(
        [*(program or SSO), *arguments],
        env=environment,
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=False,
    )


class Server:
    def __init__(self, folder: Path, settings: dict[str, str], program: Sequence[str] = ()) -> None:
        """Without a program, its processes are forked from one that has imported it (kit/forked_program.py)."""
        self.folder = folder
        self._program = program
        own = {"SSO_BIND": "127.0.0.1:0", "SSO_DATA_DIR": str(folder / "data")}
        self.settings = own | SINGLE_NODE | DEFAULT_SETTINGS | settings
        self.base_url = ""
        self.process: subprocess.Popen[str] | ForkedProcess | None = None
        self._log: IO[str] | None = None
        self.keeps_services_open = False
        self._services: OpenServices | None = None

    def start(self, *options: str) -> None:
        """Starts the server, with options of `sso serve`, and waits until it is ready."""
        self._log = (self.folder / "server.log").open("a")
        environment = clean_environment(**self.settings)
        if not self._program and can_fork(environment):
            if "SSO_DATABASE_URL" not in self.settings:
                prepare()
            self.process = ForkedProcess(["serve", *options], env=environment, cwd=self.folder, stderr=self._log)
        else:
            self.process = subprocess.Popen(
                [*(self._program or SSO), "serve", *options],
                env=environment,
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
                start_new_session=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        match = re.search(r"ready at (\S+)", line)
        if not match:
            self.stop()
            raise AssertionError(f"the server did not start: {self.log()[-3000:]}")
        self.base_url = match[1]
        # Keep the port after a restart.
        self.settings["SSO_BIND"] = self.base_url.removeprefix("http://")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        if self._services:
            self._services.close()
            self._services = None
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self._wait_and_close(self.process, self._log)

    def replace(self) -> None:
        """Starts the program again while it runs, as for an upgrade. The new process ends the old one."""
        process, log = self.process, self._log
        assert process is not None
        self.start("--replace")
        self._wait_and_close(process, log)

    @staticmethod
    def _wait_and_close(process: "subprocess.Popen[str] | ForkedProcess", log: IO[str] | None) -> int:
        try:
            return process.wait(60)
        finally:
            assert process.stdout is not None
            assert log is not None
            process.stdout.close()
            log.close()

    def log(self) -> str:
        """Returns the complete lines of the log; the last line may still be being written."""
        written = (self.folder / "server.log").read_text()
        return written[: written.rfind("\n") + 1]

    def log_events(self, event: str) -> list[dict[str, Any]]:
        lines = [line for line in self.log().splitlines() if line.startswith("{") and event in line]
        return [entry for entry in map(orjson.loads, lines) if entry["event"] == event]

    def workers(self) -> list[int]:
        """Returns the pids of the running workers."""
        assert self.process is not None
        try:
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        except OSError:  # it has ended
            return []
        return [int(pid) for pid in children if _name(pid).startswith("sso-worker")]

    def sso(self, *arguments: str, stdin: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs a command of the program with the same settings."""
        done = run_sso(self.folder, *arguments, stdin=stdin, program=self._program, **self.settings)
        assert not check or done.returncode == 0, done.stderr
        return done

    def apply(self, document: dict[str, Any]) -> None:
        """Applies a document like `sso apply`, but in this process, which saves a second."""
        self.run_with_services(lambda services: apply_document(services, document))

    def save_accounts(self, **document: Any) -> None:
        """Saves users and clients that a test begins with: ``save_accounts(users=[…], clients=[…])``."""
        self.run_with_services(lambda services: save_accounts(services, document))

    def run_with_services(self, function: Callable[[Services], Awaitable[T]]) -> T:
        """Returns the result of a function of services that use the server's database, in this process.

        They stay open until the server stops if no test disturbs its database: opening them takes six times as long as
        applying a document.
        """
        database_url = self.settings["SSO_DATABASE_URL"]
        if not self.keeps_services_open:
            return trio.run(run_once, load(None, self.settings), database_url, function)
        if self._services is None:
            self._services = OpenServices(load(None, self.settings), database_url)
        return self._services.run(function)

    def client(self, **options: Any) -> httpx.Client:
        if self.base_url.startswith("http://") and options.keys().isdisjoint({"transport", "verify"}):
            options["transport"] = PlainTransport()
        return httpx.Client(base_url=self.base_url, timeout=60, **options)


def _name(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


@contextmanager
def running(folder: Path, program: Sequence[str] = (), **settings: str) -> Iterator[Server]:
    """Runs a server whose database no test disturbs."""
    server = Server(folder, settings, program)
    server.keeps_services_open = True
    server.start()
    try:
        yield server
    finally:
        server.stop()


def until(condition: Any, seconds: float = LIMIT_S) -> Any:
    """Waits until the condition is true, or the time is over. Returns its last value.

    The pauses grow with the time that has passed: most conditions cost the server a request or a query.
    """
    began = time.monotonic()
    while not (value := condition()) and (passed := time.monotonic() - began) < seconds:
        time.sleep(min(max(passed / 5, 0.01), 0.25))
    return value


NO_LIMITS = {
    f"SSO_RATE_{name}": "0"
    for name in ("LOGIN", "AUTHORIZE", "USER_CODE", "ADMIN", "GETGSID", "UPSTREAM", "REGISTER", "CLIENT_REGISTRATION")
}
