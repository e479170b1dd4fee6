"""Fixtures for the tests of the HTTP servers and the supervisor."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from trio.testing import MockClock

from tests.serve.supervised import Start, SupervisorProcess


@pytest.fixture
def virtual_clock() -> MockClock:
    """Makes timeouts independent of the speed of the machine: time passes only while all tasks wait, and then at once.

    The threshold gives the kernel time to deliver bytes between two sockets of this process.
    """
    return MockClock(autojump_threshold=0.01)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[SupervisorProcess] = []

    def start_script(script: str) -> SupervisorProcess:
        started.append(SupervisorProcess(tmp_path, script))
        return started[-1]

    yield start_script
    for supervisor in started:
        while supervisor.process.poll() is None:
            supervisor.send_signal(signal.SIGINT)  # the second one makes it kill its children
            time.sleep(0.1)
