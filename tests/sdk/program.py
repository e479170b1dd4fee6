"""The test programs of packages, which read commands and print events. Those in Python are forked to save time."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import IO, Any

import trio

from sdk.contract import runner
from sdk.contract.packages import Package
from tests.kit import forked_program
from tests.kit.forked_program import ROOT, ForkedProcess
from tests.kit.server import Server, clean_environment

LIMIT_S = 300.0  # a key of Mono takes a while


def play(name: str, program: Sequence[str], folder: Path = runner.SCENARIOS) -> list[str]:
    """Plays a scenario of the contract. Returns the problems."""
    return runner.play(name, program, folder, _run_command).problems


async def _run_command(command: Sequence[str], stdin: str) -> subprocess.CompletedProcess[str]:
    if command[0] != sys.executable:
        return await runner.run_command(command, stdin)

    def run() -> subprocess.CompletedProcess[str]:
        _, script, *arguments = command
        return forked_program.run(arguments, script=script, env=os.environ, cwd=ROOT, stdin=stdin, timeout=LIMIT_S)

    return await trio.to_thread.run_sync(run)


class Program:
    """The test program of a package while it runs."""

    def __init__(self, stdin: IO[str], stdout: IO[str]) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._events: Queue[dict[str, Any]] = Queue()
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._stdout:
            self._events.put(json.loads(line))

    def send(self, **command: Any) -> None:
        self._stdin.write(json.dumps(command) + "\n")
        self._stdin.flush()

    def event(self, name: str) -> dict[str, Any]:
        """Returns the next event that is no stage, which must have this name."""
        try:
            while (event := self._events.get(timeout=LIMIT_S))["event"] == "stage":
                pass
        except Empty:
            raise AssertionError(f"the event {name} did not come") from None
        assert event["event"] == name, event
        return event


@contextmanager
def program(package: Package, server: Server, folder: Path) -> Iterator[Program]:
    process, stdin = _start([*package.program, server.base_url, str(folder)])
    assert process.stdout is not None
    with process.stdout as stdout:
        try:
            with stdin:
                yield Program(stdin, stdout)
            assert process.wait(LIMIT_S) == 0
        finally:
            process.kill()
            process.wait()


def _start(command: Sequence[str]) -> tuple[subprocess.Popen[str] | ForkedProcess, IO[str]]:
    """Returns a process and its input."""
    environment = clean_environment()
    if command[0] == sys.executable:
        _, script, *arguments = command
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb") as stdin:
            process = ForkedProcess(arguments, script=script, env=environment, cwd=ROOT, stdin=stdin)
        return process, os.fdopen(writing, "w")
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started: subprocess.Popen[str] = subprocess.Popen(command, env=environment, **pipes)
    assert started.stdin is not None
    return started, started.stdin
