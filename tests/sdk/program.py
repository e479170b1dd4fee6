"""The test programs of packages, which read commands and print events."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

from sdk.contract.packages import Package
from tests.kit.server import Server, clean_environment

LIMIT_S = 300.0  # a key of Mono takes a while


class Program:
    """The test program of a package while it runs."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._events: Queue[dict[str, Any]] = Queue()
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._events.put(json.loads(line))

    def send(self, **command: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

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
    command = [*package.program, server.base_url, str(folder)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=clean_environment(), **pipes) as process:
        try:
            yield Program(process)
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(LIMIT_S) == 0
        finally:
            process.kill()
