"""A burst of requests does not make the rounds of the event loop long."""

import trio
import trio.testing
from trio.lowlevel import checkpoint

from sso.serve.http1.pacing import MAX_STARTS, RequestPacing


async def test_single_requests_start_without_waiting(nursery: trio.Nursery) -> None:
    pacing = RequestPacing()
    nursery.start_soon(pacing.run)
    for _ in range(3 * MAX_STARTS):
        await checkpoint()
        assert pacing.try_start()
    nursery.cancel_scope.cancel()


async def test_number_of_starts_in_one_round_is_limited(nursery: trio.Nursery) -> None:
    pacing = RequestPacing()
    starts_by_round = [0]

    class Rounds(trio.abc.Instrument):
        def after_io_wait(self, timeout: float) -> None:
            starts_by_round.append(0)

    async def request() -> None:
        if not pacing.try_start():
            await pacing.wait_for_start()
        starts_by_round[-1] += 1

    nursery.start_soon(pacing.run)
    await trio.testing.wait_all_tasks_blocked()
    trio.lowlevel.add_instrument(rounds := Rounds())
    async with trio.open_nursery() as burst:
        for _ in range(10 * MAX_STARTS):
            burst.start_soon(request)
    trio.lowlevel.remove_instrument(rounds)
    assert sum(starts_by_round) == 10 * MAX_STARTS
    assert max(starts_by_round) <= MAX_STARTS
    nursery.cancel_scope.cancel()


async def test_cancelled_request_leaves_the_queue(nursery: trio.Nursery) -> None:
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
