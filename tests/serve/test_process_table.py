"""When the supervisor restarts a process that has ended."""

import pytest

from sso.serve.child_process import ChildProcess, ChildRole
from sso.serve.process_table import ProcessSlot, ProcessTable

ROLE = ChildRole("worker", lambda ready, number: None)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("time.monotonic", clock)
    return clock


def exited(clock: Clock, *, after_s: float = 0.0, code: int = 1, ready: bool = False) -> ChildProcess:
    child = ChildProcess(ROLE, "worker-1", 1, None, started=clock.now, ready=ready)
    clock.now += after_s
    child.exit_code = code
    return child


def test_delay_doubles_up_to_ten_seconds_for_a_process_that_does_not_become_ready(clock: Clock) -> None:
    slot = ProcessSlot(ROLE, 1)
    delays = []
    for _ in range(9):
        slot.child_exited(exited(clock))
        delays.append(slot.restart_at - clock.now)
    assert delays == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10])


def test_process_that_had_become_ready_is_restarted_at_once_however_often_it_is_killed(clock: Clock) -> None:
    slot = ProcessSlot(ROLE, 1)
    for _ in range(60):
        slot.child_exited(exited(clock, after_s=1.5, code=-9, ready=True))
        assert slot.restart_at <= clock.now


def test_process_that_crashes_as_soon_as_it_is_ready_starts_twice_a_second_at_most(clock: Clock) -> None:
    slot = ProcessSlot(ROLE, 1)
    for _ in range(9):
        slot.child_exited(exited(clock, after_s=0.1, ready=True))
        assert slot.restart_at - clock.now == pytest.approx(0.4)
        clock.now = slot.restart_at


def test_readiness_ends_the_growing_delay(clock: Clock) -> None:
    slot = ProcessSlot(ROLE, 1)
    for _ in range(5):
        slot.child_exited(exited(clock))
    slot.child_exited(exited(clock, after_s=1.0, ready=True))
    assert slot.restart_at <= clock.now
    slot.child_exited(exited(clock))
    assert slot.restart_at - clock.now == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("codes", "ready", "failed"),
    [
        ([1, 1, 2], False, True),
        ([1, 1], False, False),
        ([1, 1, -9, 1], False, False),
        ([1, 1, 1], True, False),
    ],
)
def test_start_has_failed_after_three_exits_in_a_row(clock: Clock, codes: list[int], ready: bool, failed: bool) -> None:
    processes = ProcessTable()
    slot = ProcessSlot(ROLE, 1)
    processes.slots.append(slot)
    for code in codes:
        slot.child_exited(exited(clock, code=code, ready=ready))
    assert processes.start_failed is failed
