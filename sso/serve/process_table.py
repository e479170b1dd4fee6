"""The child processes of the supervisor: forks them, reaps them, and restarts those that end unexpectedly."""

import os
import signal
import time

import structlog
from msgspec import Struct

from sso.serve.child_process import ChildProcess, ChildRole, ReadyPipe, flush_output, run_child

_MIN_START_INTERVAL_S = 0.5  # between two starts of a process that became ready each time
_BACK_OFF_S = (0.1, 10.0)  # the first and the longest delay after a process that did not become ready
_MAX_START_FAILURES = 3  # in a row, before the first start is given up

_log = structlog.get_logger()


class ProcessSlot(Struct, eq=False):
    """A process that must always run: if it ends, another is started in its slot."""

    role: ChildRole
    number: int
    child: ChildProcess | None = None
    restart_at: float = 0.0  # used while the slot is empty
    failed_starts: int = 0  # in a row, for whatever reason
    start_failures: int = 0
    was_ready: bool = False

    @property
    def is_ready(self) -> bool:
        return self.child is not None and self.child.ready

    def back_off(self) -> None:
        """Delays the next restart, twice as long each time."""
        first, longest = _BACK_OFF_S
        self.restart_at = time.monotonic() + min(longest, first * 2 ** min(self.failed_starts, 16))
        self.failed_starts += 1

    def child_exited(self, child: ChildProcess) -> None:
        """Schedules the restart: at once if the process had become ready, however often it was killed before."""
        self.child = None
        self.was_ready = self.was_ready or child.ready
        if child.ready:
            self.failed_starts, self.restart_at = 0, child.started + _MIN_START_INTERVAL_S
        else:
            self.back_off()
        failed_to_start = child.exit_code in (1, 2) and not self.was_ready
        self.start_failures = self.start_failures + 1 if failed_to_start else 0


class ProcessTable:
    def __init__(self) -> None:
        self.children: dict[int, ChildProcess] = {}  # by pid; all that run, with or without a slot
        self.slots: list[ProcessSlot] = []

    @property
    def start_failed(self) -> bool:
        """Whether a process failed so often in a row that it will probably never start."""
        return any(slot.start_failures >= _MAX_START_FAILURES for slot in self.slots)

    def fill_slots(self) -> None:
        """Starts the processes that are missing and due."""
        for slot in self.slots:
            if slot.child is None and slot.restart_at <= time.monotonic():
                slot.child = self.start(slot.role, slot.number)
                if slot.child is None:
                    slot.back_off()

    def start(self, role: ChildRole, number: int) -> ChildProcess | None:
        """Forks a process. Returns None if the operating system refuses."""
        try:
            child = self._fork(role, number)
        except OSError:
            _log.exception("process.start_failed")
            return None
        _log.info("process.started", child=child.name, pid=child.pid)
        return child

    def _fork(self, role: ChildRole, number: int) -> ChildProcess:
        supervisor_pid = os.getpid()
        read_fd, write_fd = os.pipe()
        os.set_blocking(read_fd, False)
        flush_output()  # otherwise both processes would write what is buffered
        try:
            pid = os.fork()
        except OSError:
            os.close(read_fd)
            os.close(write_fd)
            raise
        if pid == 0:
            ready_fds = [child.ready_fd for child in self.children.values() if child.ready_fd is not None]
            run_child(role, number, supervisor_pid, ReadyPipe(write_fd), [read_fd, *ready_fds])
        os.close(write_fd)
        child = self.children[pid] = ChildProcess(role, role.process_name(number), pid, read_fd)
        return child

    def update(self) -> None:
        """Notices the processes that have become ready or have ended."""
        for child in self.children.values():
            child.update_ready()
        self._reap()

    def _reap(self) -> None:
        # Waits for any process: as process 1 of a container, the supervisor inherits orphans of other processes.
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if child := self.children.pop(pid, None):
                child.exit_code = os.waitstatus_to_exitcode(status)
                child.update_ready()  # it may have reported ready since the last update
                self._child_exited(child)

    def _child_exited(self, child: ChildProcess) -> None:
        how = _describe_exit(child.exit_code)
        if not child.signalled:
            _log.error("process.died", child=child.name, pid=child.pid, how=how)
        elif child.exited_cleanly:
            _log.info("process.exited", child=child.name, pid=child.pid, how=how)
        else:
            _log.error("process.exited", child=child.name, pid=child.pid, how=how)
        slot = next((slot for slot in self.slots if slot.child is child), None)
        if slot is not None:
            slot.child_exited(child)


def _describe_exit(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
