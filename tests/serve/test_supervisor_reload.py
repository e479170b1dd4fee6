"""The supervisor with real processes: SIGHUP replaces the workers."""

import json
import os
import signal
from pathlib import Path

from tests.serve.supervised import Start

RELOADING = """
from sso.core.errors import OperatorError
supervisor._READY_S = 1000
COUNT, EXIT_AFTER = 2, None
Path("generation").write_text("1")
def read_roles():
    generation = Path("generation").read_text()
    if generation == "broken":
        raise ValueError("broken configuration")
    if generation == "wrong":
        raise OperatorError("SSO_WORKERS: must be an integer from 1 to 256")
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


def test_wrong_setting_at_a_reload_is_one_line_that_names_it(start: Start) -> None:
    supervisor = start(RELOADING)
    supervisor.wait_for("ready")
    supervisor.reload("wrong")
    supervisor.wait_for_log("reload.failed")
    assert supervisor.stop() == 0
    (line,) = [json.loads(line) for line in supervisor.log.splitlines() if "reload.failed" in line]
    assert (line["reason"], "exception" in line) == ("SSO_WORKERS: must be an integer from 1 to 256", False)


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
