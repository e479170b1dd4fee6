"""The supervisor with real processes.

Each test runs a short script whose processes append lines to a file, `events`. Each line is one write, so the order of
the lines is the order of the events. No test measures how fast something happens: limits that must not be reached are
set so high that the test would fail at its own deadline.

This file has more than 300 lines because all tests share the scripts at its beginning.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import sso
from sso.serve.child_process import ChildRole
from sso.serve.supervisor import Supervisor

DEADLINE_S = 60.0

PRELUDE = '''
import os, signal, sys, time
from pathlib import Path
from sso.serve import process_table, supervisor
from sso.serve.child_process import ChildRole
from sso.serve.supervisor import Supervisor

def record(*words):
    events = os.open("events", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(events, (" ".join(map(str, words)) + "\\n").encode())
    os.close(events)

def wait_for_file(name):
    while not Path(name).exists():
        time.sleep(0.01)

def serve(name, exit_after=None, code=0):
    """Runs until SIGTERM, waits for the file `exit_after`, and exits with the code."""
    def run(ready, number):
        def stop(*_):
            record(name, "sigterm", os.getpid())
            if exit_after:
                wait_for_file(exit_after)
            record(name, "exit", os.getpid())
            raise SystemExit(code)
        signal.signal(signal.SIGTERM, stop)
        record(name, "start", os.getpid())
        ready()
        while True:
            signal.pause()
    return run

def fail(name, code=1):
    def run(ready, number):
        record(name, "start", os.getpid())
        raise SystemExit(code)
    return run

def ignore_sigterm(name):
    def run(ready, number):
        signal.signal(signal.SIGTERM, lambda *_: record(name, "sigterm", os.getpid()))
        record(name, "start", os.getpid())
        ready()
        while True:
            signal.pause()
    return run

def supervise(*roles, **options):
    sys.exit(Supervisor(roles, on_ready=lambda: record("ready"), **options).run())
'''


class SupervisorProcess:
    """A running script and its events."""

    def __init__(self, folder: Path, script: str) -> None:
        self.folder = folder
        (folder / "prelude.py").write_text(PRELUDE)
        (folder / "script.py").write_text(f"from prelude import *\n{script}\n")
        (folder / "log").touch()
        (folder / "events").touch()
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "error", "script.py"],
                cwd=folder,
                env={"PATH": os.defpath, "PYTHONPATH": str(Path(sso.__file__).parents[1]), "NO_COLOR": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def events(self, *words: str) -> list[list[str]]:
        """Returns the events that begin with these words."""
        lines = [line.split() for line in (self.folder / "events").read_text().splitlines()]
        return [line for line in lines if line[: len(words)] == list(words)]

    def pids(self, *words: str) -> list[int]:
        return [int(line[-1]) for line in self.events(*words)]

    def wait_until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            if time.monotonic() > deadline:
                pytest.fail(f"did not happen\n{self.events()}\n{self.log}")
            time.sleep(0.01)

    def wait_for(self, *words: str, count: int = 1) -> None:
        self.wait_until(lambda: len(self.events(*words)) >= count)

    def wait_for_log(self, event: str, count: int = 1) -> None:
        self.wait_until(lambda: self.log.count(event) >= count)

    def create(self, name: str) -> None:
        """Creates a file that processes wait for."""
        (self.folder / name).touch()

    def send_signal(self, signum: signal.Signals) -> None:
        self.process.send_signal(signum)

    def reload(self, generation: str) -> None:
        (self.folder / "generation").write_text(generation)
        self.send_signal(signal.SIGHUP)

    def exit_code(self) -> int:
        try:
            return self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            pytest.fail(f"still running\n{self.events()}\n{self.log}")

    def stop(self) -> int:
        self.send_signal(signal.SIGTERM)
        return self.exit_code()


Start = Callable[[str], SupervisorProcess]


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


def test_roles_start_in_order_and_ready_is_reported_once(start: Start) -> None:
    supervisor = start("""
def slow(ready, number):
    record("slow")
    wait_for_file("proceed")
    serve("database")(ready, number)
supervise(ChildRole("database", slow), ChildRole("worker", serve("worker"), count=2))
""")
    supervisor.wait_for("slow")
    supervisor.create("proceed")
    supervisor.wait_for("ready")
    assert [line[0] for line in supervisor.events()] == ["slow", "database", "worker", "worker", "ready"]
    os.kill(supervisor.pids("worker", "start")[0], signal.SIGKILL)
    supervisor.wait_for("worker", "start", count=3)
    assert supervisor.stop() == 0
    assert len(supervisor.events("ready")) == 1


def test_killed_process_is_restarted(start: Start) -> None:
    supervisor = start('supervise(ChildRole("worker", serve("worker"), 2))')
    supervisor.wait_for("ready")
    os.kill(supervisor.pids("worker", "start")[0], signal.SIGKILL)
    supervisor.wait_for("worker", "start", count=3)
    assert "SIGKILL" in supervisor.log
    assert supervisor.stop() == 0
    assert len(supervisor.pids("worker", "exit")) == 2


def test_process_that_keeps_failing_is_restarted_with_growing_delays(start: Start) -> None:
    supervisor = start("""
process_table._BACK_OFF_S = (0.02, 10.0)
def crash(ready, number):
    record("crash", time.monotonic())
    ready()
    raise RuntimeError("as planned")
supervise(ChildRole("worker", crash))
""")
    supervisor.wait_for("crash", count=5)
    times = [float(line[1]) for line in supervisor.events("crash")]
    for (earlier, later), delay in zip(pairwise(times), (0.02, 0.04, 0.08, 0.16), strict=False):
        assert later - earlier > delay
    supervisor.wait_for_log("process.died", count=5)
    assert "as planned" in supervisor.log  # with its traceback
    assert supervisor.stop() == 0


@pytest.mark.parametrize("code", [1, 2])
def test_first_start_that_fails_three_times_is_given_up(start: Start, code: int) -> None:
    supervisor = start(
        f'supervise(ChildRole("database", serve("database")), ChildRole("worker", fail("worker", {code})))'
    )
    assert supervisor.exit_code() == 1
    assert len(supervisor.events("worker", "start")) == 3
    assert len(supervisor.events("database", "exit")) == 1
    assert not supervisor.events("ready")
    assert "supervisor.start_failed" in supervisor.log


def test_first_start_that_fails_twice_is_repeated(start: Start) -> None:
    supervisor = start("""
def succeed_at_third_attempt(ready, number):
    record("attempt")
    if Path("events").read_text().count("attempt") < 3:
        sys.exit("not yet")
    serve("worker")(ready, number)
supervise(ChildRole("worker", succeed_at_third_attempt))
""")
    supervisor.wait_for("ready")
    assert supervisor.log.count("not yet") == 2
    assert supervisor.stop() == 0


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_roles_stop_in_reverse_order(start: Start, signum: signal.Signals) -> None:
    supervisor = start("""
workers = ChildRole("worker", serve("worker", exit_after="proceed"), count=2)
supervise(ChildRole("database", serve("database")), workers, drain_s=1000)
""")
    supervisor.wait_for("ready")
    supervisor.send_signal(signum)
    supervisor.wait_for("worker", "sigterm", count=2)
    assert not supervisor.events("database", "sigterm")
    supervisor.create("proceed")
    assert supervisor.exit_code() == 0
    stopping = [line[:2] for line in supervisor.events() if line[1:2] in (["sigterm"], ["exit"])]
    assert stopping == [
        *[["worker", "sigterm"]] * 2,
        *[["worker", "exit"]] * 2,
        ["database", "sigterm"],
        ["database", "exit"],
    ]


def test_failed_exit_of_a_process_makes_the_exit_code_1(start: Start) -> None:
    supervisor = start('supervise(ChildRole("worker", serve("worker", code=3)))')
    supervisor.wait_for("ready")
    assert supervisor.stop() == 1
    assert "exit code 3" in supervisor.log


def test_sigterm_before_a_process_handles_it_is_a_clean_exit(start: Start) -> None:
    supervisor = start("""
def slow(ready, number):
    record("slow")
    time.sleep(1000)
supervise(ChildRole("worker", slow))
""")
    supervisor.wait_for("slow")
    assert supervisor.stop() == 0


def test_process_that_ignores_sigterm_is_killed_after_the_drain(start: Start) -> None:
    supervisor = start("""
supervise(ChildRole("database", serve("database")), ChildRole("worker", ignore_sigterm("worker")), drain_s=0.5)
""")
    supervisor.wait_for("ready")
    before = time.monotonic()
    assert supervisor.stop() == 1
    assert time.monotonic() - before > 0.4
    assert "process.killed" in supervisor.log
    assert supervisor.events("worker", "sigterm")
    assert supervisor.events("database", "exit")  # it has time of its own


def test_second_sigterm_changes_neither_the_drain_nor_the_exit_code(start: Start) -> None:
    supervisor = start("""
def slow(ready, number):
    signal.signal(signal.SIGTERM, lambda *_: record("slow", "sigterm"))
    ready()
    wait_for_file("proceed")
supervise(ChildRole("worker", slow), drain_s=1000)
""")
    supervisor.wait_for("ready")
    supervisor.send_signal(signal.SIGTERM)
    supervisor.wait_for("slow", "sigterm")
    for _ in range(3):
        supervisor.send_signal(signal.SIGTERM)
    supervisor.create("proceed")
    assert supervisor.exit_code() == 0
    assert len(supervisor.events("slow", "sigterm")) == 1
    assert "process.killed" not in supervisor.log


def test_second_ctrl_c_kills_at_once(start: Start) -> None:
    supervisor = start('supervise(ChildRole("worker", ignore_sigterm("worker")), drain_s=1000)')
    supervisor.wait_for("ready")
    supervisor.send_signal(signal.SIGINT)
    supervisor.wait_for("worker", "sigterm")
    supervisor.send_signal(signal.SIGINT)
    assert supervisor.exit_code() == 1


def test_ctrl_c_reaches_the_supervisor_only(start: Start) -> None:
    supervisor = start('supervise(ChildRole("worker", serve("worker")))')
    supervisor.wait_for("ready")
    assert os.getpgid(supervisor.pids("worker", "start")[0]) != os.getpgid(supervisor.process.pid)
    assert supervisor.stop() == 0


RELOADING = """
supervisor._READY_S = 1000
COUNT, EXIT_AFTER = 2, None
Path("generation").write_text("1")
def read_roles():
    generation = Path("generation").read_text()
    if generation == "broken":
        raise ValueError("broken configuration")
    failing = {"fail": fail("worker-fail"), "never-ready": lambda *_: (record("never-ready"), time.sleep(1000))}
    run = failing.get(generation) or serve("worker-" + generation, EXIT_AFTER)
    return [ChildRole("database", serve("database")), ChildRole("worker", run, COUNT)]
supervise(*read_roles(), reload=read_roles)
"""


def test_sighup_replaces_workers_one_by_one(start: Start) -> None:
    supervisor = start(RELOADING)
    supervisor.wait_for("ready")
    supervisor.reload("2")
    supervisor.wait_for_log("reload.finished")
    counts = worker_counts(supervisor.events())
    assert (min(counts[1:]), max(counts)) == (2, 3)
    assert len(supervisor.events("worker-1", "exit")) == 2
    assert len(supervisor.events("worker-2", "start")) == 2
    assert not supervisor.events("database", "sigterm")
    os.kill(supervisor.pids("worker-2", "start")[0], signal.SIGKILL)  # it is restarted with the new configuration
    supervisor.wait_for("worker-2", "start", count=3)
    assert supervisor.stop() == 0
    assert len(supervisor.events("worker-2", "exit")) == 2
    assert len(supervisor.events("ready")) == 1


def worker_counts(events: list[list[str]]) -> list[int]:
    """Returns the number of workers that were not told to stop, after each event of a worker."""
    counts = [0]
    for line in events:
        if line[0].startswith("worker"):
            counts.append(counts[-1] + {"start": 1, "sigterm": -1, "exit": 0}[line[1]])
    return counts[1:]


def test_sighup_can_change_the_number_of_workers(start: Start) -> None:
    supervisor = start(RELOADING.replace("run, COUNT)", 'run, int(generation) if generation != "1" else 2)'))
    supervisor.wait_for("ready")
    supervisor.reload("3")
    supervisor.wait_for_log("reload.finished")
    assert len(supervisor.events("worker-3", "start")) == 3
    supervisor.reload("1")
    supervisor.wait_for_log("reload.finished", count=2)
    assert len(supervisor.events("worker-3", "exit")) == 3
    assert len(supervisor.events("worker-1", "start")) == 4
    assert supervisor.stop() == 0


def test_failed_reload_keeps_the_old_workers(start: Start) -> None:
    supervisor = start(RELOADING)
    supervisor.wait_for("ready")
    supervisor.reload("fail")
    supervisor.wait_for_log("reload.abandoned")
    supervisor.reload("broken")
    supervisor.wait_for_log("reload.failed")
    assert not supervisor.events("worker-1", "sigterm")
    assert len(supervisor.events("worker-fail")) == 1
    supervisor.reload("2")
    supervisor.wait_for_log("reload.finished")
    assert supervisor.stop() == 0


def test_new_worker_that_never_becomes_ready_is_stopped(start: Start) -> None:
    supervisor = start(RELOADING.replace("_READY_S = 1000", "_READY_S = 0.5"))
    supervisor.wait_for("ready")
    supervisor.reload("never-ready")
    supervisor.wait_for_log("reload.abandoned")
    assert not supervisor.events("worker-1", "sigterm")
    assert len(supervisor.events("never-ready")) <= 1
    assert supervisor.stop() == 0


def test_sigterm_interrupts_a_reload(start: Start) -> None:
    supervisor = start(RELOADING)
    supervisor.wait_for("ready")
    supervisor.reload("never-ready")
    supervisor.wait_for("never-ready")
    assert supervisor.stop() == 0
    assert len(supervisor.events("worker-1", "exit")) == 2
    assert supervisor.events()[-1][:2] == ["database", "exit"]


def test_shutdown_does_not_repeat_the_sigterm_of_a_reload(start: Start) -> None:
    supervisor = start(RELOADING.replace("EXIT_AFTER = 2, None", 'EXIT_AFTER = 2, "proceed"'))
    supervisor.wait_for("ready")
    supervisor.reload("2")
    supervisor.wait_for("worker-1", "sigterm")
    supervisor.send_signal(signal.SIGTERM)
    supervisor.wait_for("worker-1", "sigterm", count=2)
    supervisor.create("proceed")
    assert supervisor.exit_code() == 0
    assert len(supervisor.events("worker-1", "sigterm")) == 2  # one for each worker


def test_old_worker_that_dies_during_a_reload_is_restarted(start: Start) -> None:
    supervisor = start(RELOADING)
    supervisor.wait_for("ready")
    supervisor.reload("never-ready")
    supervisor.wait_for("never-ready")
    for pid in supervisor.pids("worker-1", "start"):
        os.kill(pid, signal.SIGKILL)
    supervisor.wait_for("worker-1", "start", count=4)
    assert supervisor.stop() == 0


def test_several_sighups_during_a_reload_cause_one_more(start: Start) -> None:
    supervisor = start("""
def read_roles():
    record("read")
    return [ChildRole("worker", serve("worker", exit_after="proceed"))]
supervise(*read_roles(), reload=read_roles, drain_s=1000)
""")
    supervisor.wait_for("ready")
    supervisor.send_signal(signal.SIGHUP)
    supervisor.wait_for("worker", "sigterm")
    for _ in range(3):
        supervisor.send_signal(signal.SIGHUP)
        supervisor.wait_until(lambda: not has_pending_sighup(supervisor.process.pid))
    supervisor.create("proceed")
    supervisor.wait_for_log("reload.finished", count=2)
    assert supervisor.stop() == 0
    assert len(supervisor.events("read")) == 3


def has_pending_sighup(pid: int) -> bool:
    masks = [
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(("ShdPnd", "SigPnd"))
    ]
    return any(int(line.split()[1], 16) & (1 << (signal.SIGHUP - 1)) for line in masks)


def test_processes_stop_when_the_supervisor_is_killed(start: Start) -> None:
    supervisor = start(
        'supervise(ChildRole("database", serve("database")), ChildRole("worker", serve("worker"), count=2))'
    )
    supervisor.wait_for("ready")
    supervisor.process.kill()
    supervisor.wait_for("worker", "exit", count=2)
    supervisor.wait_for("database", "exit")
    assert supervisor.exit_code() == -signal.SIGKILL


def test_idle_supervisor_does_not_wake(start: Start) -> None:
    supervisor = start('supervise(ChildRole("worker", serve("worker")))')
    supervisor.wait_for("ready")

    def wakes() -> int:
        status = Path(f"/proc/{supervisor.process.pid}/status").read_text()
        return int(status.split("nonvoluntary_ctxt_switches")[0].split("voluntary_ctxt_switches:")[1])

    def wakes_in_half_a_second() -> int:
        before = wakes()
        time.sleep(0.5)
        return wakes() - before

    supervisor.wait_until(lambda: wakes_in_half_a_second() <= 1)  # while it polls, there are ten
    assert supervisor.stop() == 0


def test_error_in_on_ready_stops_everything(start: Start) -> None:
    supervisor = start('sys.exit(Supervisor([ChildRole("worker", serve("worker"))], on_ready=lambda: 1 / 0).run())')
    assert supervisor.exit_code() == 1
    assert supervisor.events("worker", "exit")
    assert "ZeroDivisionError" in supervisor.log


def test_process_has_unblocked_signals_and_a_name(start: Start) -> None:
    supervisor = start("""
def inspect(ready, number):
    record("blocked", len(signal.pthread_sigmask(signal.SIG_BLOCK, ())))
    record("name", Path("/proc/self/comm").read_text().strip())
    serve("worker")(ready, number)
supervise(ChildRole("worker", inspect))
""")
    supervisor.wait_for("ready")
    assert supervisor.events("blocked", "0")
    assert supervisor.events("name", "sso-worker-1")
    assert supervisor.stop() == 0


def test_buffered_output_is_written_once(start: Start) -> None:
    supervisor = start("""
print("before the fork")
def write(ready, number):
    print("in the child")
    serve("worker")(ready, number)
roles = [ChildRole("worker", write)]
sys.exit(Supervisor(roles, on_ready=lambda: os.kill(os.getpid(), signal.SIGTERM)).run())
""")
    assert supervisor.exit_code() == 0
    assert supervisor.log.count("before the fork") == 1
    assert supervisor.log.count("in the child") == 1


def test_invalid_roles_are_rejected() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ChildRole("worker", lambda ready, number: None, count=0)
    role = ChildRole("worker", lambda ready, number: None)
    with pytest.raises(ValueError, match="different names"):
        Supervisor([role, role])
