"""``delay``: 0 when the server is at ease, growing when it is not."""

import trio
import trio.testing

from sso.gsid.backpressure import MAX_DELAY_S, SAMPLE_INTERVAL_S, Backpressure


def test_at_ease_the_delay_is_the_least_one() -> None:
    assert Backpressure(0).delay() == 0
    assert Backpressure(3).delay() == 3


def test_it_grows_with_the_time_that_the_database_takes_and_has_a_limit() -> None:
    delays = []
    for seconds in (0.05, 0.5, 1.0, 3.0, 60.0):
        ease = Backpressure(2)
        for _ in range(20):
            ease.record_poll_duration(seconds)
        delays.append(ease.delay())
    assert delays[0] == 2
    assert delays == sorted(set(delays))
    assert delays[-1] == 2 + MAX_DELAY_S
    assert all(isinstance(delay, int) for delay in delays)


def test_one_slow_answer_among_many_is_not_felt() -> None:
    ease = Backpressure(0)
    ease.record_poll_duration(0.5)
    for _ in range(5):
        ease.record_poll_duration(0.01)
    assert ease.delay() == 0


async def test_what_went_slowly_is_forgotten(autojump_clock: trio.testing.MockClock) -> None:
    ease = Backpressure(0)
    for _ in range(20):
        ease.record_poll_duration(5.0)
    async with trio.open_nursery() as nursery:
        await nursery.start(ease.run)
        assert ease.delay() >= 20
        await trio.sleep(SAMPLE_INTERVAL_S * 15)
        assert ease.delay() == 0
        nursery.cancel_scope.cancel()


async def test_it_grows_when_tasks_run_late(mock_clock: trio.testing.MockClock) -> None:
    ease = Backpressure(0)
    async with trio.open_nursery() as nursery:
        await nursery.start(ease.run)
        for _ in range(10):
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(SAMPLE_INTERVAL_S + 2)  # it wanted to run two seconds earlier
        await trio.testing.wait_all_tasks_blocked()
        assert 4 <= ease.delay() <= 8
        nursery.cancel_scope.cancel()


def test_a_server_that_leaves_spreads_those_who_come_back() -> None:
    ease = Backpressure(1)
    ease.drain(5000)
    delays = {ease.delay() for _ in range(500)}
    assert delays == {1, 2, 3, 4, 5, 6}
