"""The supervisor with real processes: start, restarts and stop.

No test measures how fast something happens: limits that must not be reached are
set so high that the test would fail at its own deadline.
"""

import os
import signal
import time
from itertools import pairwise
from pathlib import Path

import pytest

from sso.serve.child_process import ChildRole
from sso.serve.supervisor import Supervisor
from tests.serve.supervised import Start


def test_roles_start_at_the_same_time_and_ready_is_reported_once_all_are(start: Start) -> None:
    supervisor = start("""
def slow(ready, number):
    wait_for_file("proceed")
    serve("database")(ready, number)
supervise(ChildRole("database", slow), ChildRole("worker", serve("worker"), count=2))
""")
    supervisor.wait_for("worker", "start", count=2)
    supervisor.create("proceed")
    supervisor.wait_for("ready")
    assert [line[0] for line in supervisor.events()] == ["worker", "worker", "database", "ready"]
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
    supervisor.stop()  # the exit code is 1 if the process fails once more at this moment


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
