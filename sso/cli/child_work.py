"""Runs work in a child process, whose memory is freed when it ends."""

import os
import pickle
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from sso.core.errors import ApiError, OperatorError

_STOPPING = (signal.SIGTERM, signal.SIGINT)


def run_in_child(work: Callable[[], object]) -> None:
    """Calls ``work`` in a forked process and waits for its end. Raises its failure as an OperatorError.

    The caller must have no other threads.
    """
    read_fd, write_fd = os.pipe()
    sys.stdout.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)  # until this process would stop the child as well
    pid = os.fork()
    if pid == 0:
        os.close(read_fd)
        _run(work, write_fd)
    try:
        os.close(write_fd)
        with os.fdopen(read_fd, "rb") as pipe, _signal_events() as signalled:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
            while read_fd not in select.select([read_fd, signalled], [], [])[0]:
                os.read(signalled, 100)  # the handler runs now, and may raise
            failure = pipe.read()
    except BaseException:  # this process is being stopped
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        raise
    finally:
        status = os.waitpid(pid, 0)[1]
    if failure:
        raise pickle.loads(failure)  # noqa: S301 - our own process has written it
    if status != 0:
        raise SystemExit(1)  # the child has printed why


@contextmanager
def _signal_events() -> Iterator[int]:
    """Yields a pipe that can be read when a signal has come, even if it came just before this process waits for it."""
    read_fd, write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = signal.set_wakeup_fd(write_fd)
    try:
        yield read_fd
    finally:
        signal.set_wakeup_fd(before)
        os.close(read_fd)
        os.close(write_fd)


def _run(work: Callable[[], object], write_fd: int) -> None:
    code = 1
    for number in _STOPPING:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
    try:
        work()
        code = 0
    except OperatorError as error:
        os.write(write_fd, pickle.dumps(error))
    except ApiError as error:
        os.write(write_fd, pickle.dumps(OperatorError(str(error))))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
