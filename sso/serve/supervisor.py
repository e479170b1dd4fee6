"""The supervisor: starts the processes of the service, restarts and replaces them, and stops them in order.

The supervisor forks, so it has no threads and no event loop. It has no signal handlers either: the signals it uses are
blocked, and `_wait_for_signal`, the only place that waits, takes them one at a time. Everything that has to wait calls
`_wait_until`, which goes on reaping and restarting processes; a request to stop leaves it as an exception.
"""

import signal
import time
from collections.abc import Callable, Iterable, Sequence

import structlog

from sso.core.errors import OperatorError
from sso.serve.child_process import SUPERVISOR_SIGNALS, ChildProcess, ChildRole
from sso.serve.process_table import ProcessSlot, ProcessTable

WORKER = "worker"  # the role that SIGHUP replaces

_POLL_S = 0.01  # while a process is not ready yet
_IDLE_S = 5.0  # a safety net: everything of interest arrives as a signal
_READY_S = 15.0  # for a new worker during a reload
_KILL_S = 1.0
# During the shutdown a second SIGTERM has no effect, since the time is limited anyway. A second Ctrl-C ends it at once.
_SHUTDOWN_SIGNALS = frozenset({signal.SIGCHLD, signal.SIGINT})
_RESERVED_SHARE = 0.05  # part of the drain time that each later role keeps, if an earlier one takes it all
_LEAST_S = 1.0  # that a process has to stop, even if the drain time is over

_log = structlog.get_logger()


class _StopRequested(Exception):
    """SIGTERM or SIGINT was received."""


class _StartFailed(Exception):
    """The first start cannot succeed."""


class Supervisor:
    """Runs the roles until SIGTERM or SIGINT. Roles start at the same time, and stop in the reverse order of the list.

    SIGHUP calls `reload` for new roles (without it the same roles are used) and replaces the workers; the other roles
    stay as they are until a restart.
    """

    def __init__(
        self,
        roles: Sequence[ChildRole],
        *,
        drain_s: float = 9.0,
        on_ready: Callable[[], None] | None = None,
        on_stop: Callable[[], None] | None = None,
        reload: Callable[[], Sequence[ChildRole]] | None = None,
    ) -> None:
        self._roles = tuple(roles)
        if len({role.name for role in self._roles}) != len(self._roles):
            raise ValueError("roles: expected different names")
        self._drain_s = drain_s
        self._on_ready = on_ready
        self._on_stop = on_stop
        self._load_roles = reload
        self._processes = ProcessTable()
        self._started = False
        self._reload_requested = False

    def run(self) -> int:
        """Returns the exit code: 0 if it was asked to stop, and every process then exited by itself with 0."""
        previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, SUPERVISOR_SIGNALS)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if inherited as ignored, it would hide exit codes
        stop_requested = False
        try:
            self._start()
            while True:
                self._wait_until(lambda: self._reload_requested)
                self._reload_requested = False
                self._reload()
        except _StopRequested:
            stop_requested = True
        except _StartFailed:
            _log.error("supervisor.start_failed")  # the process has logged the reason
        except Exception:
            _log.exception("supervisor.failed")
        try:
            return 0 if self._shut_down() and stop_requested else 1
        finally:
            while signal.sigtimedwait(SUPERVISOR_SIGNALS, 0):  # a late signal must not change the exit code
                pass
            signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)

    # Start, reload, shutdown

    def _start(self) -> None:
        slots = self._processes.slots
        slots.extend(ProcessSlot(role, number) for role in self._roles for number in range(1, role.count + 1))
        self._processes.fill_slots()
        self._wait_until(lambda: all(slot.is_ready for slot in slots))
        self._started = True
        _log.info("supervisor.started", count=len(self._processes.children))
        if self._on_ready:
            self._on_ready()

    def _reload(self) -> None:
        try:
            roles = self._load_roles() if self._load_roles else self._roles
            role = next((role for role in roles if role.name == WORKER), None)
        except OperatorError as error:  # a setting is wrong
            _log.error("reload.failed", reason=str(error))
            return
        except (Exception, SystemExit):
            _log.exception("reload.failed")
            return
        if role is None:
            _log.error("reload.refused")
            return
        _log.info("reload.started", count=role.count)
        slots = self._processes.slots
        worker_slots = [slot for slot in slots if slot.role.name == WORKER]
        for number in range(1, role.count + 1):
            slot = worker_slots[number - 1] if number <= len(worker_slots) else ProcessSlot(role, number)
            if not self._replace(slot, role):
                _log.error("reload.abandoned", replaced=number - 1)
                return
            if slot not in slots:
                slots.append(slot)
        for slot in worker_slots[role.count :]:
            slots.remove(slot)
            if slot.child:
                self._stop(slot.child)
        _log.info("reload.finished")

    def _replace(self, slot: ProcessSlot, role: ChildRole) -> bool:
        """Starts a process of the new role, then stops the old one. Returns False if the new one does not work."""
        new = self._processes.start(role, slot.number)
        if new is None:
            return False
        self._wait_until(lambda: new.ready or new.has_exited, _READY_S)
        if new.has_exited or not new.ready:
            _log.error("process.replacement_failed", child=new.name, pid=new.pid)
            self._stop(new)
            return False
        old, slot.child, slot.role = slot.child, new, role
        slot.failed_starts = 0
        if old:
            self._stop(old)
        return not new.has_exited

    def _stop(self, child: ChildProcess) -> None:
        child.send_signal(signal.SIGTERM)
        if not self._wait_until(lambda: child.has_exited, self._drain_s + 1.0):
            self._kill([child])

    def _shut_down(self) -> bool:
        """Stops all processes. Returns whether all of them exited by themselves, with code 0."""
        self._processes.slots.clear()  # nothing is restarted any more
        if self._on_stop:
            self._on_stop()
        children = list(self._processes.children.values())
        end = time.monotonic() + self._drain_s
        try:
            for later_roles, role in reversed(list(enumerate(self._roles))):
                group = [child for child in children if child.role.name == role.name]
                for child in group:
                    if not child.signalled:  # by a reload: a second signal could mean "at once" to the process
                        child.send_signal(signal.SIGTERM)
                timeout = end - time.monotonic() - later_roles * _RESERVED_SHARE * self._drain_s
                if not self._wait_for_exit(group, max(timeout, _LEAST_S), _SHUTDOWN_SIGNALS):
                    self._kill(group)
        except _StopRequested:
            _log.warning("supervisor.stop_forced")
            self._kill(children)
        return all(child.exited_cleanly for child in children)

    def _kill(self, children: Iterable[ChildProcess]) -> None:
        running = [child for child in children if not child.has_exited]
        for child in running:
            _log.error("process.killed", child=child.name, pid=child.pid)
            child.send_signal(signal.SIGKILL)
        # The time is limited, as not even SIGKILL ends a process that is blocked in the kernel.
        self._wait_for_exit(running, _KILL_S, frozenset({signal.SIGCHLD}))

    # Waiting

    def _wait_for_exit(
        self, children: Sequence[ChildProcess], timeout: float, signals: frozenset[signal.Signals]
    ) -> bool:
        return self._wait_until(lambda: all(child.has_exited for child in children), timeout, signals)

    def _wait_until(
        self,
        done: Callable[[], bool],
        timeout: float | None = None,
        signals: frozenset[signal.Signals] = SUPERVISOR_SIGNALS,
    ) -> bool:
        """Returns False if the timeout ends first. Raises _StopRequested."""
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        while not done():
            if time.monotonic() >= deadline:
                return False
            self._wait_for_signal(deadline, signals)
        return True

    def _wait_for_signal(self, deadline: float, signals: frozenset[signal.Signals]) -> None:
        """Sleeps until a signal arrives or a restart is due, then updates the state of all processes."""
        processes = self._processes
        now = time.monotonic()
        wake_times = [deadline, now + _IDLE_S, *(slot.restart_at for slot in processes.slots if slot.child is None)]
        if any(child.ready_fd is not None for child in processes.children.values()):
            wake_times.append(now + _POLL_S)
        received = signal.sigtimedwait(signals, max(0.0, min(wake_times) - now))
        processes.update()
        if processes.start_failed and not self._started:
            raise _StartFailed
        match received and received.si_signo:
            case signal.SIGHUP:
                self._reload_requested = True
            case signal.SIGTERM | signal.SIGINT:
                raise _StopRequested
        processes.fill_slots()
