"""The fair queue: callers take turns by lane, in a bounded queue; cancelled callers are removed from it."""

import pytest
import trio
import trio.testing

from sso.core.fair_queue import FairQueue, QueueFull


class Users:
    """Callers of a queue with one slot, which is taken until ``serve`` lets the callers in."""

    def __init__(self, queue: FairQueue, nursery: trio.Nursery) -> None:
        self.queue = queue
        self.nursery = nursery
        self.served: list[str] = []
        self.refused: list[str] = []
        self.scopes: dict[str, trio.CancelScope] = {}
        self.lane = "holder"
        self._open = trio.Event()

    async def occupy(self) -> None:
        async def hold() -> None:
            async with self.queue.slot(self.lane):
                await self._open.wait()

        self.nursery.start_soon(hold)
        await trio.testing.wait_all_tasks_blocked()

    async def come(self, name: str, *lanes: str) -> None:
        async def wait() -> None:
            with trio.CancelScope() as self.scopes[name]:
                try:
                    async with self.queue.slot(*lanes):
                        self.served.append(name)
                except QueueFull:
                    self.refused.append(name)

        self.nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()

    async def serve(self) -> None:
        self._open.set()
        await trio.testing.wait_all_tasks_blocked()


@pytest.fixture
async def users(nursery: trio.Nursery) -> Users:
    users = Users(FairQueue(1, 1100), nursery)
    await users.occupy()
    return users


@pytest.mark.parametrize(
    "lanes",
    [("address 1", "account 1"), ("address {n}", "account 1"), ("address 1", "account {n}")],
    ids=["one address, one account", "many addresses, one account", "one address, many accounts"],
)
async def test_thousand_callers_of_one_lane_delay_another_caller_by_one_turn(
    users: Users, lanes: tuple[str, ...]
) -> None:
    for number in range(1000):
        users.nursery.start_soon(users.come, f"flood {number}", *(lane.format(n=number) for lane in lanes))
    await trio.testing.wait_all_tasks_blocked()
    await users.come("other", "address X", "account X")
    await users.serve()
    assert users.served.index("other") == 1
    assert len(users.served) == 1001


async def test_lanes_are_served_in_turns(users: Users) -> None:
    for name in ("a1", "a2", "a3", "b1", "b2", "c1"):
        await users.come(name, f"address {name[0]}", f"account {name[0]}")
    await users.serve()
    assert users.served == ["a1", "b1", "c1", "a2", "b2", "a3"]


async def test_callers_that_are_cancelled_cost_their_lane_nothing(users: Users) -> None:
    for number in range(5):
        await users.come(f"gone {number}", "address 1", "account 1")
    for number in range(5):
        users.scopes[f"gone {number}"].cancel()
    await trio.testing.wait_all_tasks_blocked()
    assert len(users.queue) == 0
    await users.come("other", "address 2", "account 2")
    await users.come("later", "address 1", "account 1")
    await users.come("last", "address 2", "account 2")
    await users.serve()
    assert users.served == ["other", "later", "last"]


async def test_full_queue_refuses_the_caller_with_the_latest_turn(nursery: trio.Nursery) -> None:
    users = Users(FairQueue(1, 3), nursery)
    await users.occupy()
    for number in range(4):
        await users.come(f"flood {number}", "address 1", "account 1")
    assert users.refused == ["flood 3"]
    await users.come("other", "address 2", "account 2")
    assert users.refused == ["flood 3", "flood 2"]
    await users.come("flood 4", "address 1", "account 1")
    assert users.refused == ["flood 3", "flood 2", "flood 4"]
    await users.serve()
    assert users.served == ["flood 0", "other", "flood 1"]


async def test_caller_who_has_waited_for_long_is_refused(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    users = Users(FairQueue(1, 10, max_wait_s=5), nursery)
    await users.occupy()
    await users.come("early", "lane 1")
    await trio.sleep(3)
    await users.come("late", "lane 2")
    await trio.sleep(3)
    assert (users.refused, len(users.queue)) == (["early"], 1)
    await users.serve()
    assert users.served == ["late"]
    await users.come("next", "lane 1")
    assert users.served == ["late", "next"]


async def test_slots_are_returned_whatever_happens(nursery: trio.Nursery) -> None:
    queue = FairQueue(2, 10)
    users = Users(queue, nursery)
    with pytest.raises(ZeroDivisionError):
        async with queue.slot("a"):
            raise ZeroDivisionError
    with trio.CancelScope() as scope:
        async with queue.slot("a"):
            scope.cancel()
            await trio.sleep_forever()
    for number in range(2):
        await users.come(f"user {number}", "a")
    assert users.served == ["user 0", "user 1"]


async def test_caller_cancelled_at_the_moment_of_admission_returns_its_slot(users: Users) -> None:
    await users.come("gone", "a")
    await users.come("next", "b")
    users._open.set()
    users.scopes["gone"].cancel()
    await trio.testing.wait_all_tasks_blocked()
    assert "next" in users.served
    await users.come("afterwards", "c")
    assert "afterwards" in users.served


async def test_lane_holds_no_more_slots_than_allowed_and_leaves_the_others_free(nursery: trio.Nursery) -> None:
    queue = FairQueue(3, 100, max_per_lane=1)
    users = Users(queue, nursery)
    await users.occupy()  # in the lane "holder"
    for number in range(3):
        await users.come(f"holder {number}", "holder", f"project {number}")
    assert users.served == []
    await users.come("other", "account 1")
    assert users.served == ["other"]
    await users.serve()
    assert users.served == ["other", "holder 0", "holder 1", "holder 2"]
    assert len(queue) == 0


async def test_caller_of_two_lanes_is_not_overtaken_by_later_callers_of_one(nursery: trio.Nursery) -> None:
    queue = FairQueue(2, 100, max_per_lane=1)
    holders = [Users(queue, nursery), Users(queue, nursery)]
    for users, lane in zip(holders, ("application", "project"), strict=True):
        users.lane = lane
        await users.occupy()
    users = holders[0]
    await users.come("both", "application", "project")
    await users.come("one", "project")
    await holders[1].serve()
    assert users.served == []  # "one" waits behind "both", which still needs the application
    await users.serve()
    assert users.served == ["both", "one"]


async def test_cancelled_caller_is_no_longer_in_the_way_of_others(nursery: trio.Nursery) -> None:
    queue = FairQueue(2, 100, max_per_lane=1)
    users = Users(queue, nursery)
    await users.occupy()
    await users.come("both", "holder", "project")
    await users.come("one", "project")
    assert users.served == []
    users.scopes["both"].cancel()
    await trio.testing.wait_all_tasks_blocked()
    assert users.served == ["one"]
    await users.serve()
