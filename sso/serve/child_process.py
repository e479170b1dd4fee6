"""A child process of the supervisor: what it is told to run, its life from the inside, and what is known of it."""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn

import structlog

# What the supervisor listens to; a child starts with all of it as if nobody had touched it.
SUPERVISOR_SIGNALS = frozenset({signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_libc = ctypes.CDLL(None, use_errno=True)
_log = structlog.get_logger()


class ReadyPipe:
    """Given to a role in its child process; called once it serves. Calling it again does nothing."""

    def __init__(self, fd: int) -> None:
        self._fd: int | None = fd

    def __call__(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            with suppress(BrokenPipeError):  # the supervisor is gone, and SIGTERM on its way
                os.write(fd, b"\n")
            os.close(fd)


@dataclass(frozen=True)
class ChildRole:
    """A kind of child process: what it runs and how many of it.

    `run` is also given its number: those of a role count from 1, and who follows another takes over its number. It
    leaves by returning or by SystemExit, and answers SIGTERM from the moment it has said it is ready.
    """

    name: str
    run: Callable[[ReadyPipe, int], None]
    count: int = 1

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"role {self.name}: at least one process is needed, not {self.count}")

    def name_of(self, number: int) -> str:
        return f"{self.name}-{number}"


@dataclass(eq=False)
class ChildProcess:
    role: ChildRole
    name: str
    pid: int
    pipe: int | None  # None once it has spoken
    born: float = field(default_factory=time.monotonic)
    ready: bool = False
    told: bool = False
    exit: int | None = None  # negative: the signal that ended it

    @property
    def gone(self) -> bool:
        return self.exit is not None

    @property
    def left_well(self) -> bool:
        # Not yet ready, it may have had no handler yet: SIGTERM then ends it without harm.
        return self.exit == 0 or (self.exit == -signal.SIGTERM and self.told and not self.ready)

    def look(self) -> None:
        """Has it said that it serves?"""
        if self.pipe is None:
            return
        with suppress(BlockingIOError):
            self.ready = os.read(self.pipe, 1) != b""
            os.close(self.pipe)
            self.pipe = None

    def tell(self, signum: signal.Signals) -> None:
        self.told = True
        if not self.gone:  # until it is reaped its pid cannot be anybody else's
            os.kill(self.pid, signum)


def run_child(role: ChildRole, number: int, supervisor: int, ready: ReadyPipe, not_ours: Sequence[int]) -> NoReturn:
    """The whole life of a child. It never returns into the supervisor's stack."""
    code = 1
    name = role.name_of(number)
    try:
        for fd in not_ours:
            os.close(fd)
        _settle_in(name, supervisor)
        role.run(ready, number)
        code = 0
    except SystemExit as leave:
        code = _exit_code(leave)
    except BaseException:
        _log.exception("process failed", child=name)
    finally:
        flush_output()
        os._exit(code)


def _settle_in(name: str, supervisor: int) -> None:
    # A group of its own: Ctrl-C then reaches the supervisor alone, which stops the roles in order.
    os.setpgid(0, 0)
    for signum in SUPERVISOR_SIGNALS:
        signal.signal(signum, signal.default_int_handler if signum == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGTERM))
    if os.getppid() != supervisor:  # it died before the line above, so no signal will come
        raise SystemExit(0)
    _prctl(_PR_SET_NAME, ctypes.c_char_p(f"sso-{name}".encode()))  # as ps and top show it; the kernel cuts at 15
    structlog.contextvars.bind_contextvars(process=name)


def _prctl(option: int, value: object) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")


def _exit_code(leave: SystemExit) -> int:
    if leave.code is None:
        return 0
    if isinstance(leave.code, int):
        return leave.code & 0xFF
    _log.error("process failed", reason=str(leave.code))
    return 1


def flush_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # closed, replaced or a broken pipe: nothing to save
            stream.flush()
