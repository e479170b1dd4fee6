"""A rush of requests does not make the rounds of the event loop long."""

import trio
import trio.testing
from trio.lowlevel import checkpoint

from sso.serve.http1.pacing import MAX_STARTS, RequestPacing


async def test_a_request_that_comes_alone_does_not_wait(nursery: trio.Nursery) -> None:
    pacing = RequestPacing()
    nursery.start_soon(pacing.run)
    for _ in range(3 * MAX_STARTS):
        await checkpoint()
        assert pacing.try_start()
    nursery.cancel_scope.cancel()


async def test_no_more_than_so_many_begin_in_one_round(nursery: trio.Nursery) -> None:
    pacing = RequestPacing()
    begun = [0]

    class Rounds(trio.abc.Instrument):
        def after_io_wait(self, timeout: float) -> None:
            begun.append(0)

    async def request() -> None:
        if not pacing.try_start():
            await pacing.wait_for_start()
        begun[-1] += 1

    nursery.start_soon(pacing.run)
    await trio.testing.wait_all_tasks_blocked()
    trio.lowlevel.add_instrument(rounds := Rounds())
    async with trio.open_nursery() as rush:
        for _ in range(10 * MAX_STARTS):
            rush.start_soon(request)
    trio.lowlevel.remove_instrument(rounds)
    assert sum(begun) == 10 * MAX_STARTS
    assert max(begun) <= MAX_STARTS
    nursery.cancel_scope.cancel()


async def test_who_waits_may_be_called_off(nursery: trio.Nursery) -> None:
    pacing = RequestPacing()
    nursery.start_soon(pacing.run)
    while pacing.try_start():
        pass
    with trio.move_on_after(0) as scope:
        await pacing.wait_for_start()
    assert scope.cancelled_caught
    await trio.testing.wait_all_tasks_blocked()
    assert pacing.try_start()
    nursery.cancel_scope.cancel()
