"""The thread pool runs a bounded number of jobs at a time, in order, and finishes every job that has started."""

import threading

import pytest
import trio
import trio.testing

from sso.core.thread_pool import ThreadPool

TIMEOUT_S = 60  # generous, for slow machines


class Jobs:
    """Jobs that run until they are released."""

    def __init__(self, pool: ThreadPool) -> None:
        self.pool = pool
        self.started: list[int] = []
        self.done: list[int] = []
        self.peak = 0
        self._lock = threading.Lock()
        self._permits = threading.Semaphore(0)

    async def run(self, number: int) -> None:
        assert await self.pool.run(self._work, number) == number

    def release(self, count: int) -> None:
        self._permits.release(count)

    async def wait_until_started(self, count: int) -> None:
        with trio.fail_after(TIMEOUT_S):
            while len(self.started) < count:  # noqa: ASYNC110 - threads set no event
                await trio.sleep(0.001)

    def _work(self, number: int) -> int:
        with self._lock:
            self.started.append(number)
            self.peak = max(self.peak, len(self.started) - len(self.done))
        assert self._permits.acquire(timeout=TIMEOUT_S)
        with self._lock:
            self.done.append(number)
        return number


@pytest.mark.parametrize("max_threads", [1, 3])
async def test_jobs_run_in_as_many_threads_as_allowed(max_threads: int) -> None:
    jobs = Jobs(ThreadPool(max_threads))
    for _ in range(3):
        jobs.started, jobs.done, jobs.peak = [], [], 0
        async with trio.open_nursery() as nursery:
            for number in range(12):
                nursery.start_soon(jobs.run, number)
            await jobs.wait_until_started(max_threads)
            jobs.release(12)
        assert sorted(jobs.done) == list(range(12))
        assert jobs.peak == max_threads


async def test_jobs_run_in_order_of_arrival() -> None:
    pool = ThreadPool(1)
    order: list[int] = []
    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(pool.run, order.append, number)
            await trio.lowlevel.checkpoint()
    assert order == list(range(20))


async def test_job_does_not_run_in_the_thread_of_the_event_loop() -> None:
    assert await ThreadPool(1).run(threading.get_ident) != threading.get_ident()


async def test_error_of_a_job_reaches_its_caller_only() -> None:
    pool = ThreadPool(1)
    with pytest.raises(ZeroDivisionError):
        await pool.run(divmod, 1, 0)
    assert await pool.run(divmod, 7, 2) == (3, 1)


async def test_waiting_job_can_be_cancelled() -> None:
    jobs = Jobs(ThreadPool(1))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(jobs.run, 1)
        await jobs.wait_until_started(1)
        with trio.move_on_after(0.01) as scope:
            await jobs.run(2)
        assert scope.cancelled_caught
        assert not jobs.done
        jobs.release(2)
    assert await jobs.pool.run(abs, -3) == 3
    assert jobs.done == [1]


async def test_running_job_is_finished_when_its_caller_is_cancelled() -> None:
    jobs = Jobs(ThreadPool(1))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(jobs.run, 1)
        await jobs.wait_until_started(1)
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await trio.testing.wait_all_tasks_blocked()
        assert not jobs.done
        jobs.release(1)
    assert jobs.done == [1]


async def test_job_runs_on_the_event_loop_if_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    pool = ThreadPool(2)
    with monkeypatch.context() as patch:
        patch.setattr(trio.lowlevel, "start_thread_soon", fail)
        assert await pool.run(threading.get_ident) == threading.get_ident()
    assert await pool.run(threading.get_ident) != threading.get_ident()


async def test_first_thread_runs_all_jobs_if_no_second_one_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    start = trio.lowlevel.start_thread_soon
    threads = 0

    def start_one(*arguments: object) -> None:
        nonlocal threads
        threads += 1
        if threads > 1:
            raise RuntimeError("can't start new thread")
        start(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(trio.lowlevel, "start_thread_soon", start_one)
    jobs = Jobs(ThreadPool(3))
    jobs.release(6)
    async with trio.open_nursery() as nursery:
        for number in range(6):
            nursery.start_soon(jobs.run, number)
    assert sorted(jobs.done) == list(range(6))
    assert jobs.peak == 1
