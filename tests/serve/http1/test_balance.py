"""Balance between workers: one with more connections lets the others accept first, but never waits for long."""

import os
import socket
from contextlib import ExitStack

import trio
from trio.testing import MockClock

from sso.serve.http1.accept import MAX_YIELDS, YIELD_S, ConnectionLimiter, accept_forever
from sso.serve.http1.balance import WorkerSlot, WorkerSlots
from sso.serve.server_limits import ServerLimits

CLIENTS = 300


def accepting(slot: WorkerSlot, connections: int = 0) -> WorkerSlot:
    """Returns the slot of a worker that accepts connections, and has some already."""
    slot.start_accepting()
    for _ in range(connections):
        slot.add_connection()
    return slot


def test_worker_sees_the_connection_counts_of_the_others() -> None:
    slots = WorkerSlots()
    first, second = accepting(slots.slot(1, 3), 4), accepting(slots.slot(2, 3), 7)
    assert (first.other_counts, second.other_counts) == ([7], [4])
    second.remove_connection()
    assert first.other_counts == [6]


def test_worker_is_counted_only_while_it_accepts() -> None:
    """Otherwise the others would wait for a worker that is starting, or was never started."""
    slots = WorkerSlots()
    first = accepting(slots.slot(1, 4))
    assert first.other_counts == []
    second = slots.slot(2, 4)
    assert first.other_counts == []
    second.start_accepting()
    assert first.other_counts == [0]


def test_allowed_lead_grows_with_the_connections() -> None:
    leads = [accepting(WorkerSlot(), connections).max_lead for connections in (0, 7, 8, 800)]
    assert leads == [1, 1, 2, 101]


def test_processes_share_the_counts() -> None:
    slots = WorkerSlots()
    if (pid := os.fork()) == 0:
        accepting(slots.slot(2, 2), 1)
        os._exit(0)
    os.waitpid(pid, 0)
    assert slots.slot(1, 2).other_counts == [1]


def test_replacement_resets_the_count_and_its_predecessor_no_longer_publishes() -> None:
    slots = WorkerSlots()
    old, other = accepting(slots.slot(1, 2), 3), accepting(slots.slot(2, 2))
    new = accepting(slots.slot(1, 2))
    old.detach()
    new.add_connection()
    old.remove_connection()
    assert (old.connections, new.connections) == (2, 1)
    assert other.other_counts == [1]
    assert old.other_counts == []


def listener_with_clients(clients: int, stack: ExitStack) -> socket.socket:
    """Returns a listener at which clients wait; the stack closes all of them."""
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=clients))
    listener.setblocking(False)
    for _ in range(clients):
        stack.enter_context(socket.create_connection(listener.getsockname()))
    return listener


class Burst:
    """Workers that accept from the same listener until all clients are connected."""

    def __init__(self, clients: int, workers: int) -> None:
        self.counts = [0, 0]
        self._clients = clients
        self._workers = workers
        self._all_connected = trio.Event()

    async def run(self) -> list[int]:
        """Returns the connections of each worker."""
        with ExitStack() as stack, trio.fail_after(60):
            listener = listener_with_clients(self._clients, stack)
            async with trio.open_nursery() as nursery:
                for index in range(self._workers):
                    nursery.start_soon(self._accept, stack.enter_context(listener.dup()), index, stack)
                await self._all_connected.wait()
                nursery.cancel_scope.cancel()
        return self.counts

    async def _accept(self, listener: socket.socket, index: int, stack: ExitStack) -> None:
        limiter = ConnectionLimiter(ServerLimits(), accepting(WorkerSlot(self.counts, index)))

        def on_connection(sock: socket.socket, client: tuple[str, int] | None) -> None:
            stack.enter_context(sock)
            assert limiter.admit(client)
            if sum(self.counts) == self._clients:
                self._all_connected.set()

        await accept_forever(listener, limiter, on_connection)


async def test_workers_share_a_burst_of_connections(autojump_clock: MockClock) -> None:
    counts = await Burst(32, workers=2).run()
    assert sum(counts) == 32
    assert min(counts) >= 8  # not exactly half: trio runs tasks in random order


async def test_worker_accepts_everything_if_the_other_accepts_nothing() -> None:
    assert await Burst(32, workers=1).run() == [32, 0]


async def test_waiting_for_an_idle_worker_is_limited(autojump_clock: MockClock) -> None:
    """Short connections, while another worker has none and accepts none."""
    limiter = ConnectionLimiter(ServerLimits(), accepting(WorkerSlot([0, 0], 0), 1))
    accepted, all_accepted = 0, trio.Event()

    def on_connection(sock: socket.socket, client: tuple[str, int] | None) -> None:
        nonlocal accepted
        accepted += 1
        sock.close()
        if accepted == CLIENTS:
            all_accepted.set()

    with ExitStack() as stack:
        listener = listener_with_clients(CLIENTS, stack)
        started = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(accept_forever, listener, limiter, on_connection)
            await all_accepted.wait()
            nursery.cancel_scope.cancel()
        assert trio.current_time() - started <= MAX_YIELDS * YIELD_S * 1.01
