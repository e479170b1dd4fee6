"""Work in threads: so much at a time, in order, always finished."""

import threading
import time

import pytest
import trio
import trio.testing

from sso.core.thread_pool import ThreadPool


async def many(threads: ThreadPool, count: int) -> tuple[list[int], int]:
    """In which order they were begun, and how many were at work at a time."""
    begun: list[int] = []
    now, most, lock = 0, 0, threading.Lock()

    def work(number: int) -> int:
        nonlocal now, most
        with lock:
            begun.append(number)
            now += 1
            most = max(most, now)
        time.sleep(0.005)
        with lock:
            now -= 1
        return number

    async def one(number: int) -> None:
        assert await threads.run(work, number) == number

    async with trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(one, number)
    return begun, most


@pytest.mark.parametrize("most", [1, 3])
async def test_so_many_at_a_time(most: int) -> None:
    threads = ThreadPool(most)
    for _ in range(3):
        begun, at_once = await many(threads, 12)
        assert sorted(begun) == list(range(12))
        assert at_once == most


async def test_in_the_order_in_which_it_came() -> None:
    threads = ThreadPool(1)
    order: list[int] = []

    async def one(number: int) -> None:
        await threads.run(order.append, number)

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(one, number)
            await trio.lowlevel.checkpoint()
    assert order == list(range(20))


async def test_it_is_not_done_by_the_event_loop() -> None:
    assert await ThreadPool(1).run(threading.get_ident) != threading.get_ident()


async def test_an_error_is_for_whom_it_concerns() -> None:
    threads = ThreadPool(1)
    with pytest.raises(ZeroDivisionError):
        await threads.run(divmod, 1, 0)
    assert await threads.run(divmod, 7, 2) == (3, 1)


async def test_what_waits_can_be_called_off() -> None:
    threads, done = ThreadPool(1), []

    def work(number: int) -> None:
        time.sleep(0.05)
        done.append(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(threads.run, work, 1)
        await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(0.01) as scope:
            await threads.run(work, 2)
        assert scope.cancelled_caught
        assert not done
    assert await threads.run(abs, -3) == 3
    assert done == [1]


async def test_what_has_begun_is_finished_all_the_same() -> None:
    done: list[bool] = []

    def work() -> None:
        time.sleep(0.05)
        done.append(True)

    with trio.move_on_after(0.01) as scope:
        await ThreadPool(1).run(work)
        assert done
        await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught


async def test_without_a_thread_it_is_done_on_the_spot(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    threads = ThreadPool(2)
    with monkeypatch.context() as patch:
        patch.setattr(trio.lowlevel, "start_thread_soon", none_left)
        assert await threads.run(threading.get_ident) == threading.get_ident()
    assert await threads.run(threading.get_ident) != threading.get_ident()


async def test_without_a_second_thread_the_first_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    start = trio.lowlevel.start_thread_soon
    begun = 0

    def only_one(*arguments: object) -> None:
        nonlocal begun
        begun += 1
        if begun > 1:
            raise RuntimeError("can't start new thread")
        start(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(trio.lowlevel, "start_thread_soon", only_one)
    order, at_once = await many(ThreadPool(3), 6)
    assert (sorted(order), at_once) == (list(range(6)), 1)
