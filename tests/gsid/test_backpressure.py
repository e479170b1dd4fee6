"""The delay of polls under load."""

import trio
import trio.testing

from sso.gsid.backpressure import MAX_DELAY_S, SAMPLE_INTERVAL_S, Backpressure


def test_delay_without_load_is_the_minimum() -> None:
    assert Backpressure(0).delay() == 0
    assert Backpressure(3).delay() == 3


def test_delay_grows_with_the_duration_of_polls_up_to_a_maximum() -> None:
    delays = []
    for seconds in (0.05, 0.5, 1.0, 3.0, 60.0):
        backpressure = Backpressure(2)
        for _ in range(20):
            backpressure.record_poll_duration(seconds)
        delays.append(backpressure.delay())
    assert delays[0] == 2
    assert delays == sorted(set(delays))
    assert delays[-1] == 2 + MAX_DELAY_S
    assert all(type(delay) is int for delay in delays)


def test_one_slow_poll_among_many_adds_no_delay() -> None:
    backpressure = Backpressure(0)
    backpressure.record_poll_duration(0.5)
    for _ in range(5):
        backpressure.record_poll_duration(0.01)
    assert backpressure.delay() == 0


async def test_delay_decays_when_polls_are_fast_again(autojump_clock: trio.testing.MockClock) -> None:
    backpressure = Backpressure(0)
    for _ in range(20):
        backpressure.record_poll_duration(5.0)
    async with trio.open_nursery() as nursery:
        await nursery.start(backpressure.run)
        assert backpressure.delay() >= 20
        await trio.sleep(SAMPLE_INTERVAL_S * 15)
        assert backpressure.delay() == 0
        nursery.cancel_scope.cancel()


async def test_delay_grows_with_the_lag_of_the_event_loop(mock_clock: trio.testing.MockClock) -> None:
    backpressure = Backpressure(0)
    async with trio.open_nursery() as nursery:
        await nursery.start(backpressure.run)
        for _ in range(10):
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(SAMPLE_INTERVAL_S + 2)  # a lag of two seconds
        await trio.testing.wait_all_tasks_blocked()
        assert 4 <= backpressure.delay() <= 8
        nursery.cancel_scope.cancel()


def test_draining_worker_spreads_the_return_of_its_polls() -> None:
    backpressure = Backpressure(1)
    backpressure.drain(5000)
    delays = {backpressure.delay() for _ in range(500)}
    assert delays == {1, 2, 3, 4, 5, 6}
