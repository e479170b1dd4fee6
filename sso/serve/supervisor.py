"""Keeps the processes of a server running: start in order, respawn, replace one by one, stop in reverse order.

It forks, so it has no threads and no event loop. It has no signal handlers either: the signals it knows are blocked
and taken one at a time in `_pump`, the only place that waits. Whatever needs to wait for something calls `_wait`,
which keeps respawning and reaping meanwhile; a request to stop comes out of it as an exception.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import structlog

from sso.serve.child_process import SUPERVISOR_SIGNALS, ChildProcess, ChildRole, ReadyPipe, flush_output, run_child

WORKER = "worker"  # the role that SIGHUP replaces

_POLL_S = 0.05  # while somebody is not ready yet
_IDLE_S = 5.0  # everything that matters comes as a signal, so this is only a safety net
_SETTLED_S = 5.0  # who lived this long is respawned at once
_BACK_OFF_S = (0.1, 10.0)
_REFUSALS = 3  # failures in a row before the first start is given up
_READY_S = 15.0  # for the newcomer of a reload
_KILL_S = 1.0
# While it stops, a second SIGTERM changes nothing: all is told, and the time is bounded. Ctrl-C again hurries.
_HEARD_STOPPING = frozenset({signal.SIGCHLD, signal.SIGINT})
_LAST_WORD = 0.05  # share of the drain kept for each role still to be told, so that a stuck worker cannot eat it all

_log = structlog.get_logger()


@dataclass(eq=False)
class _Seat:
    """A place that is never left empty: who dies in it is followed by another."""

    role: ChildRole
    number: int
    child: ChildProcess | None = None
    due: float = 0.0  # when an empty seat is filled
    short_lives: int = 0
    refusals: int = 0
    was_ready: bool = False


class _Stop(Exception):
    """SIGTERM or SIGINT came."""


class _GiveUp(Exception):
    """The first start cannot succeed."""


class Supervisor:
    """Runs the roles until SIGTERM or SIGINT. Roles start in the order of the list and stop in the reverse one.

    The children of a role are started when those of the roles before it are ready. SIGHUP asks `reload` for new roles
    (without it the old ones serve again) and replaces the workers; the other roles stay as they are until a restart.
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
            raise ValueError("two roles have the same name")
        self._drain_s = drain_s
        self._on_ready = on_ready
        self._on_stop = on_stop
        self._read_roles = reload
        self._children: dict[int, ChildProcess] = {}  # by pid; all that run, seated or not
        self._seats: list[_Seat] = []
        self._started = False
        self._reload_wanted = False

    def run(self) -> int:
        """Returns the exit code: 0 if it was told to stop and every child then left by itself with 0."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SUPERVISOR_SIGNALS)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, it would hide how children ended
        asked = False
        try:
            self._start()
            while True:
                self._wait(lambda: self._reload_wanted)
                self._reload_wanted = False
                self._reload()
        except _Stop:
            asked = True
        except _GiveUp:
            _log.error("the first start failed, giving up")  # the child has logged why
        except Exception:
            _log.exception("the supervisor failed")
        try:
            return 0 if self._shut_down() and asked else 1
        finally:
            while signal.sigtimedwait(SUPERVISOR_SIGNALS, 0):  # one signal too many must not change the exit code
                pass
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    # The three things it does

    def _start(self) -> None:
        for role in self._roles:
            self._seats += [_Seat(role, number) for number in range(1, role.count + 1)]
            self._fill_seats()
            self._wait(lambda: all(seat.child and seat.child.ready for seat in self._seats))
        self._started = True
        _log.info("all processes are ready", count=len(self._children))
        if self._on_ready:
            self._on_ready()

    def _reload(self) -> None:
        try:
            roles = self._read_roles() if self._read_roles else self._roles
            role = next((role for role in roles if role.name == WORKER), None)
        except (Exception, SystemExit):
            _log.exception("reload failed, keeping the old configuration")
            return
        if role is None:
            _log.error("reload gave no workers, keeping the old ones")
            return
        _log.info("replacing the workers", count=role.count)
        seats = [seat for seat in self._seats if seat.role.name == WORKER]
        for number in range(1, role.count + 1):
            seat = seats[number - 1] if number <= len(seats) else _Seat(role, number)
            if not self._replace(seat, role):
                _log.error("reload abandoned", replaced=number - 1)
                return
            if seat not in self._seats:
                self._seats.append(seat)
        for seat in seats[role.count :]:
            self._seats.remove(seat)
            if seat.child:
                self._dismiss(seat.child)
        _log.info("all workers are replaced")

    def _replace(self, seat: _Seat, role: ChildRole) -> bool:
        """Seat a child of the new role, then send the old one away. False: the newcomer is no good."""
        try:
            new = self._fork(role, seat.number)
        except OSError:
            _log.exception("cannot start a process")
            return False
        self._wait(lambda: new.ready or new.gone, _READY_S)
        if new.gone or not new.ready:
            _log.error("the new process is not ready, keeping the old one", child=new.name, pid=new.pid)
            self._dismiss(new)
            return False
        old, seat.child, seat.role = seat.child, new, role
        seat.short_lives = 0
        if old:
            self._dismiss(old)
        return not new.gone

    def _dismiss(self, child: ChildProcess) -> None:
        child.tell(signal.SIGTERM)
        if not self._wait(lambda: child.gone, self._drain_s + 1.0):
            self._kill([child])

    def _shut_down(self) -> bool:
        """Stop everything; True if all left by themselves and well."""
        self._seats.clear()  # nobody comes back from here on
        if self._on_stop:
            self._on_stop()
        everyone = list(self._children.values())
        end = time.monotonic() + self._drain_s
        try:
            for still_to_tell, role in reversed(list(enumerate(self._roles))):
                group = [child for child in everyone if child.role.name == role.name]
                for child in group:
                    if not child.told:  # a reload may have; the second time could mean "at once" to it
                        child.tell(signal.SIGTERM)
                left = end - time.monotonic() - still_to_tell * _LAST_WORD * self._drain_s
                if not self._wait_gone(group, left, _HEARD_STOPPING):
                    self._kill(group)
        except _Stop:
            _log.warning("interrupted twice, not waiting any longer")
            self._kill(everyone)
        return all(child.left_well for child in everyone)

    def _kill(self, children: Iterable[ChildProcess]) -> None:
        left = [child for child in children if not child.gone]
        for child in left:
            _log.error("killing a process that did not leave", child=child.name, pid=child.pid)
            child.tell(signal.SIGKILL)
        # Bounded, because a process stuck in the kernel does not die of SIGKILL either.
        self._wait_gone(left, _KILL_S, frozenset({signal.SIGCHLD}))

    # Waiting

    def _wait_gone(self, children: Sequence[ChildProcess], timeout: float, hear: frozenset[signal.Signals]) -> bool:
        return self._wait(lambda: all(child.gone for child in children), timeout, hear)

    def _wait(
        self,
        done: Callable[[], bool],
        timeout: float | None = None,
        hear: frozenset[signal.Signals] = SUPERVISOR_SIGNALS,
    ) -> bool:
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        while not done():
            if time.monotonic() >= deadline:
                return False
            self._pump(deadline, hear)
        return True

    def _pump(self, deadline: float, hear: frozenset[signal.Signals]) -> None:
        """Sleep until a signal comes or something is due, then bring the picture up to date."""
        now = time.monotonic()
        wakes = [deadline, now + _IDLE_S, *(seat.due for seat in self._seats if seat.child is None)]
        if any(child.pipe is not None for child in self._children.values()):
            wakes.append(now + _POLL_S)
        caught = signal.sigtimedwait(hear, max(0.0, min(wakes) - now))
        for child in self._children.values():
            child.look()
        self._reap()
        match caught and caught.si_signo:
            case signal.SIGHUP:
                self._reload_wanted = True
            case signal.SIGTERM | signal.SIGINT:
                raise _Stop
        self._fill_seats()

    def _reap(self) -> None:
        # Any process, not only ours: as process 1 of a container it inherits the orphans of others.
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if child := self._children.pop(pid, None):
                child.exit = os.waitstatus_to_exitcode(status)
                child.look()  # its last word may have come after the previous look
                self._bury(child)

    def _bury(self, child: ChildProcess) -> None:
        tell = _log.info if child.told and child.left_well else _log.error
        tell("process left" if child.told else "process died", child=child.name, pid=child.pid, how=_how(child.exit))
        seat = next((seat for seat in self._seats if seat.child is child), None)
        if seat is None:
            return
        seat.child = None
        seat.was_ready = seat.was_ready or child.ready
        now = time.monotonic()
        if now - child.born >= _SETTLED_S:
            seat.short_lives, seat.due = 0, now
        else:
            self._back_off(seat)
        seat.refusals = seat.refusals + 1 if child.exit in (1, 2) and not seat.was_ready else 0
        if seat.refusals >= _REFUSALS and not self._started:
            raise _GiveUp

    # Forking

    def _back_off(self, seat: _Seat) -> None:
        first, most = _BACK_OFF_S
        seat.due = time.monotonic() + min(most, first * 2 ** min(seat.short_lives, 16))
        seat.short_lives += 1

    def _fill_seats(self) -> None:
        for seat in self._seats:
            if seat.child is None and seat.due <= time.monotonic():
                try:
                    seat.child = self._fork(seat.role, seat.number)
                except OSError:
                    _log.exception("cannot start a process")
                    self._back_off(seat)

    def _fork(self, role: ChildRole, number: int) -> ChildProcess:
        name = role.name_of(number)
        supervisor = os.getpid()
        hears, speaks = os.pipe()
        os.set_blocking(hears, False)
        flush_output()  # or what is buffered would be written twice
        try:
            pid = os.fork()
        except OSError:
            os.close(hears)
            os.close(speaks)
            raise
        if pid == 0:
            pipes = [child.pipe for child in self._children.values() if child.pipe is not None]
            run_child(role, number, supervisor, ReadyPipe(speaks), [hears, *pipes])
        os.close(speaks)
        child = self._children[pid] = ChildProcess(role, name, pid, hears)
        _log.info("process started", child=name, pid=pid)
        return child


def _how(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
