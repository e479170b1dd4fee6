"""A rush of requests does not make the rounds of the event loop long."""

import trio
import trio.testing
from trio.lowlevel import checkpoint

from sso.serve.http1.pacing import AT_ONCE, RequestPacing


async def test_a_request_that_comes_alone_does_not_wait(nursery: trio.Nursery) -> None:
    turns = RequestPacing()
    nursery.start_soon(turns.run)
    for _ in range(3 * AT_ONCE):
        await checkpoint()
        assert turns.begin()
    nursery.cancel_scope.cancel()


async def test_no_more_than_so_many_begin_in_one_round(nursery: trio.Nursery) -> None:
    turns = RequestPacing()
    begun = [0]

    class Rounds(trio.abc.Instrument):
        def after_io_wait(self, timeout: float) -> None:
            begun.append(0)

    async def request() -> None:
        if not turns.begin():
            await turns.wait()
        begun[-1] += 1

    nursery.start_soon(turns.run)
    await trio.testing.wait_all_tasks_blocked()
    trio.lowlevel.add_instrument(rounds := Rounds())
    async with trio.open_nursery() as rush:
        for _ in range(10 * AT_ONCE):
            rush.start_soon(request)
    trio.lowlevel.remove_instrument(rounds)
    assert sum(begun) == 10 * AT_ONCE
    assert max(begun) <= AT_ONCE
    nursery.cancel_scope.cancel()


async def test_who_waits_may_be_called_off(nursery: trio.Nursery) -> None:
    turns = RequestPacing()
    nursery.start_soon(turns.run)
    while turns.begin():
        pass
    with trio.move_on_after(0) as scope:
        await turns.wait()
    assert scope.cancelled_caught
    await trio.testing.wait_all_tasks_blocked()
    assert turns.begin()
    nursery.cancel_scope.cancel()
