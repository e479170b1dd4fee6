"""A supervisor with real processes, which run a short script and append lines to a file, `events`.

Each line is one write, so the order of the lines is the order of the events.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.forked_program import ForkedProcess

DEADLINE_S = 60.0

PRELUDE = '''
import os, signal, sys, time, warnings
from pathlib import Path
from sso.log import configure_logging
from sso.serve import process_table, supervisor
from sso.serve.child_process import ChildRole
from sso.serve.supervisor import Supervisor

warnings.simplefilter("error")
configure_logging("json", "info")

def record(*words):
    events = os.open("events", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(events, (" ".join(map(str, words)) + "\\n").encode())
    os.close(events)

def wait_for_file(name):
    while not Path(name).exists():
        time.sleep(0.01)

def serve(name, exit_after=None, code=0):
    """Runs until SIGTERM, waits for the file `exit_after`, and exits with the code."""
    def run(ready, number):
        def stop(*_):
            record(name, "sigterm", os.getpid())
            if exit_after:
                wait_for_file(exit_after)
            record(name, "exit", os.getpid())
            raise SystemExit(code)
        signal.signal(signal.SIGTERM, stop)
        record(name, "start", os.getpid())
        ready()
        while True:
            signal.pause()
    return run

def fail(name, code=1):
    def run(ready, number):
        record(name, "start", os.getpid())
        raise SystemExit(code)
    return run

def ignore_sigterm(name):
    def run(ready, number):
        signal.signal(signal.SIGTERM, lambda *_: record(name, "sigterm", os.getpid()))
        record(name, "start", os.getpid())
        ready()
        while True:
            signal.pause()
    return run

def supervise(*roles, **options):
    sys.exit(Supervisor(roles, on_ready=lambda: record("ready"), **options).run())
'''


class SupervisorProcess:
    """A running script and its events."""

    def __init__(self, folder: Path, script: str) -> None:
        self.folder = folder
        (folder / "prelude.py").write_text(PRELUDE)
        (folder / "script.py").write_text(f"from prelude import *\n{script}\n")
        (folder / "log").touch()
        (folder / "events").touch()
        with (folder / "log").open("wb") as log:
            self.process = ForkedProcess(
                (), script="script.py", env={"PATH": os.defpath}, cwd=folder, stdout=log, stderr=log
            )

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def events(self, *words: str) -> list[list[str]]:
        """Returns the events that begin with these words."""
        lines = [line.split() for line in (self.folder / "events").read_text().splitlines()]
        return [line for line in lines if line[: len(words)] == list(words)]

    def pids(self, *words: str) -> list[int]:
        return [int(line[-1]) for line in self.events(*words)]

    def wait_until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"did not happen\n{self.events()}\n{self.log}")
            time.sleep(0.01)

    def wait_for(self, *words: str, count: int = 1) -> None:
        self.wait_until(lambda: len(self.events(*words)) >= count)

    def wait_for_log(self, event: str, count: int = 1) -> None:
        self.wait_until(lambda: self.log.count(event) >= count)

    def create(self, name: str) -> None:
        """Creates a file that processes wait for."""
        (self.folder / name).touch()

    def send_signal(self, signum: signal.Signals) -> None:
        self.process.send_signal(signum)

    def reload(self, generation: str) -> None:
        (self.folder / "generation").write_text(generation)
        self.send_signal(signal.SIGHUP)

    def exit_code(self) -> int:
        try:
            return self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            pytest.fail(f"still running\n{self.events()}\n{self.log}")

    def stop(self) -> int:
        self.send_signal(signal.SIGTERM)
        return self.exit_code()


Start = Callable[[str], SupervisorProcess]
