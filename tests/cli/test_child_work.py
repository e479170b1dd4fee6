"""Work in a child process, such as the migration before the service starts."""

import os
import signal
import subprocess
import sys

import pytest

from sso.cli.child_work import run_in_child
from sso.core.errors import Conflict, OperatorError
from sso.db.errors import Unavailable


def test_child_does_the_work_and_leaves_nothing_in_this_process() -> None:
    read_fd, write_fd = os.pipe()
    changed: list[int] = []

    def work() -> None:
        changed.append(1)
        os.write(write_fd, b"%d" % os.getpid())

    run_in_child(work)
    assert int(os.read(read_fd, 20)) != os.getpid()
    assert changed == []
    os.close(read_fd)
    os.close(write_fd)


def test_failure_is_raised_with_its_text() -> None:
    def work() -> None:
        raise Unavailable("the database is down")

    with pytest.raises(Unavailable, match="the database is down"):
        run_in_child(work)


def test_refused_request_is_raised_with_its_text() -> None:
    """For example an assertion that fails when `sso serve --apply` applies a document."""

    def work() -> None:
        raise Conflict("an assertion fails")

    with pytest.raises(OperatorError, match=r"^an assertion fails$"):
        run_in_child(work)


def test_unexpected_error_is_printed_and_ends_the_program(capfd: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        raise RuntimeError("a bug")

    with pytest.raises(SystemExit) as ended:
        run_in_child(work)
    assert ended.value.code == 1
    assert "RuntimeError: a bug" in capfd.readouterr().err


def test_killed_child_ends_the_program() -> None:
    with pytest.raises(SystemExit) as ended:
        run_in_child(lambda: os.kill(os.getpid(), signal.SIGKILL))
    assert ended.value.code == 1


STOPPED = """
import os, signal, sys
from sso.cli.child_work import run_in_child

def work():
    os.kill(os.getppid(), signal.SIGTERM)
    signal.pause()

signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
run_in_child(work)
"""


def test_child_ends_when_this_process_is_stopped() -> None:
    """In a program of its own: other threads of this process could get the signal."""
    done = subprocess.run([sys.executable, "-c", STOPPED], timeout=120, check=False)  # waits for the end of the child
    assert done.returncode == 7
