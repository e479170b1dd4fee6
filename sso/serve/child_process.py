"""A child process of the supervisor: its role, its life inside the child, and its state as the supervisor sees it."""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

import structlog
from msgspec import Struct, field

# The signals that the supervisor blocks and waits for; a child starts with their default handlers.
SUPERVISOR_SIGNALS = frozenset({signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_libc = ctypes.CDLL(None, use_errno=True)
_log = structlog.get_logger()


class ReadyPipe:
    """Reports to the supervisor that a child process is ready. Only the first call has an effect."""

    def __init__(self, fd: int) -> None:
        self._fd: int | None = fd

    def __call__(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            with suppress(BrokenPipeError):  # the supervisor has ended, and this process will get SIGTERM
                os.write(fd, b"\n")
            os.close(fd)


class ChildRole(Struct, frozen=True):
    """A kind of child process: the function that it runs, and the number of processes.

    `run` gets a ReadyPipe and its number within the role, counted from 1; a replacement has the number of the process
    that it replaces. It ends by returning or with SystemExit, and must handle SIGTERM once it has reported ready.
    """

    name: str
    run: Callable[[ReadyPipe, int], None]
    count: int = 1

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"role {self.name}: count: expected at least 1, got {self.count}")

    def process_name(self, number: int) -> str:
        return f"{self.name}-{number}"


class ChildProcess(Struct, eq=False):
    """A child process as the supervisor knows it."""

    role: ChildRole
    name: str
    pid: int
    ready_fd: int | None  # None once the process has reported ready, or has ended
    started: float = field(default_factory=time.monotonic)
    ready: bool = False
    signalled: bool = False
    exit_code: int | None = None  # negative: the number of the signal that ended it

    @property
    def has_exited(self) -> bool:
        return self.exit_code is not None

    @property
    def exited_cleanly(self) -> bool:
        # Before a process is ready it may have no handler for SIGTERM, which then ends it without harm.
        ended_by_sigterm = self.exit_code == -signal.SIGTERM and self.signalled and not self.ready
        return self.exit_code == 0 or ended_by_sigterm

    def update_ready(self) -> None:
        """Reads the pipe without waiting."""
        if self.ready_fd is None:
            return
        with suppress(BlockingIOError):
            self.ready = os.read(self.ready_fd, 1) != b""
            os.close(self.ready_fd)
            self.ready_fd = None

    def send_signal(self, signum: signal.Signals) -> None:
        self.signalled = True
        if not self.has_exited:  # until it is reaped, its pid cannot belong to another process
            os.kill(self.pid, signum)


def run_child(
    role: ChildRole, number: int, supervisor_pid: int, ready: ReadyPipe, inherited_fds: Sequence[int]
) -> NoReturn:
    """Runs the role in the forked process. Never returns into the supervisor's stack."""
    code = 1
    name = role.process_name(number)
    try:
        for fd in inherited_fds:
            os.close(fd)
        _set_up_process(name, supervisor_pid)
        role.run(ready, number)
        code = 0
    except SystemExit as error:
        code = _exit_code(error)
    except BaseException:
        _log.exception("process.failed", child=name)
    finally:
        flush_output()
        os._exit(code)


def _set_up_process(name: str, supervisor_pid: int) -> None:
    # Its own process group gets no Ctrl-C of the terminal: only the supervisor does, and it stops the roles in order.
    os.setpgid(0, 0)
    for signum in SUPERVISOR_SIGNALS:
        signal.signal(signum, signal.default_int_handler if signum == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGTERM))
    if os.getppid() != supervisor_pid:  # it ended before the line above, so no signal will come
        raise SystemExit(0)
    _prctl(_PR_SET_NAME, ctypes.c_char_p(f"sso-{name}".encode()))  # shown by ps and top; the kernel keeps 15 bytes
    structlog.contextvars.bind_contextvars(process=name)


def _prctl(option: int, value: object) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    _log.error("process.failed", reason=str(error.code))
    return 1


def flush_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # closed, replaced or a broken pipe: the output is lost anyway
            stream.flush()
