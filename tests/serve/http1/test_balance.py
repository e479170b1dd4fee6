"""Who has more connections than another worker lets that one go first, but never for long."""

import os
import socket
from contextlib import ExitStack

import trio

from sso.serve.http1.accept import MAX_YIELDS, YIELD_S, ConnectionLimiter, accept_forever
from sso.serve.http1.balance import WorkerSlot, WorkerSlots
from sso.serve.server_limits import ServerLimits

MANY = 300


def opened(slot: WorkerSlot, inside: int = 0) -> WorkerSlot:
    slot.start_accepting()
    for _ in range(inside):
        slot.add_connection()
    return slot


def test_each_sees_what_the_others_have() -> None:
    slots = WorkerSlots()
    first, second = opened(slots.slot(1, 3), 4), opened(slots.slot(2, 3), 7)
    assert (first.other_counts, second.other_counts) == ([7], [4])
    second.remove_connection()
    assert first.other_counts == [6]


def test_a_place_counts_when_connections_are_taken_there() -> None:
    """Else the others would wait for somebody who never comes: one who starts, or has not been started yet."""
    slots = WorkerSlots()
    first = opened(slots.slot(1, 4))
    assert first.other_counts == []
    second = slots.slot(2, 4)
    assert first.other_counts == []
    second.start_accepting()
    assert first.other_counts == [0]


def test_among_many_a_few_more_do_not_matter() -> None:
    assert [opened(WorkerSlot(), inside).max_lead for inside in (0, 7, 8, 800)] == [1, 1, 2, 101]


def test_all_processes_see_the_same() -> None:
    slots = WorkerSlots()
    if (pid := os.fork()) == 0:
        opened(slots.slot(2, 2), 1)
        os._exit(0)
    os.waitpid(pid, 0)
    assert slots.slot(1, 2).other_counts == [1]


def test_a_successor_begins_anew_and_who_leaves_is_silent() -> None:
    slots = WorkerSlots()
    old, other = opened(slots.slot(1, 2), 3), opened(slots.slot(2, 2))
    new = opened(slots.slot(1, 2))
    old.detach()
    new.add_connection()
    old.remove_connection()
    assert (old.connections, new.connections) == (2, 1)
    assert other.other_counts == [1]
    assert old.other_counts == []


def burst(many: int) -> tuple[socket.socket, ExitStack]:
    """A listener, and those that wait at it."""
    stack = ExitStack()
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=many))
    listener.setblocking(False)
    for _ in range(many):
        stack.enter_context(socket.create_connection(listener.getsockname()))
    return listener, stack


class Party:
    """Some who accept from the same listener until all are in."""

    def __init__(self, many: int, doors: int) -> None:
        self.counts = [0, 0]
        self._many = many
        self._doors = doors
        self._all = trio.Event()

    async def run(self) -> list[int]:
        listener, stack = burst(self._many)
        with stack, trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                for mine in range(self._doors):
                    nursery.start_soon(self._let_in, stack.enter_context(listener.dup()), mine, stack)
                await self._all.wait()
                nursery.cancel_scope.cancel()
        return self.counts

    async def _let_in(self, listener: socket.socket, mine: int, stack: ExitStack) -> None:
        limiter = ConnectionLimiter(ServerLimits(), opened(WorkerSlot(self.counts, mine)))

        def welcome(sock: socket.socket, client: tuple[str, int] | None) -> None:
            stack.enter_context(sock)
            assert limiter.admit(client)
            if sum(self.counts) == self._many:
                self._all.set()

        await accept_forever(listener, limiter, welcome)


async def test_a_burst_is_shared(autojump_clock: trio.testing.MockClock) -> None:
    counts = await Party(32, doors=2).run()
    assert sum(counts) == 32
    assert min(counts) >= 8  # not even: who runs first in a round is left to chance


async def test_what_the_others_leave_is_taken() -> None:
    assert await Party(32, doors=1).run() == [32, 0]


async def test_nobody_is_waited_for_who_does_not_come(autojump_clock: trio.testing.MockClock) -> None:
    """Short connections, beside a worker that has none and takes none."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=MANY)
    listener.setblocking(False)
    counts = [0, 0]
    limiter = ConnectionLimiter(ServerLimits(), opened(WorkerSlot(counts, 0), 1))
    taken, all_taken = 0, trio.Event()

    def welcome(sock: socket.socket, client: tuple[str, int] | None) -> None:
        nonlocal taken
        taken += 1
        sock.close()
        if taken == MANY:
            all_taken.set()

    with listener, ExitStack() as stack:
        for _ in range(MANY):
            stack.enter_context(socket.create_connection(listener.getsockname()))
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(accept_forever, listener, limiter, welcome)
            await all_taken.wait()
            nursery.cancel_scope.cancel()
        assert trio.current_time() - began <= MAX_YIELDS * YIELD_S * 1.01
