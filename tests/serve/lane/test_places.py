"""Who has more connections than another worker lets that one go first, but never for long."""

import os
import socket
from contextlib import ExitStack

import trio

from sso.serve.lane.accept import Door, accept
from sso.serve.lane.places import Place, Places
from sso.serve.limits import Limits


def test_without_others_there_is_no_limit() -> None:
    assert Place().room is None
    assert Places().place(1, workers=1).room is None


def test_one_ahead_is_enough_to_let_the_other_go_first() -> None:
    places = Places()
    first, second = places.place(1, 2), places.place(2, 2)
    assert (first.room, second.room) == (1, 1)
    first.enter()
    assert (first.room, second.room) == (0, 2)
    second.enter()
    second.enter()
    assert (first.room, second.room) == (2, 0)
    second.leave()
    assert (first.room, second.room) == (1, 1)


def test_among_many_a_few_more_do_not_matter() -> None:
    counts = [800, 750]
    place = Place(counts, 0)
    for _ in range(800):
        place.enter()
    assert (place.step, place.room) == (101, 51)


def test_the_least_busy_of_the_others_counts() -> None:
    counts = [0, 9, 4, 7]
    assert Place(counts, 0).room == 5


def test_all_processes_see_the_same() -> None:
    places = Places()
    if (pid := os.fork()) == 0:
        places.place(2, 2).enter()
        os._exit(0)
    os.waitpid(pid, 0)
    assert places.place(1, 2).room == 2


def test_a_successor_begins_anew_and_who_leaves_is_silent() -> None:
    places = Places()
    old, other = places.place(1, 2), places.place(2, 2)
    for _ in range(3):
        old.enter()
    new = places.place(1, 2)
    old.give_up()
    new.enter()
    old.leave()
    assert (old.inside, new.inside) == (2, 1)
    assert other.room == 2
    assert old.room is None


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
        door = Door(Limits(), Place(self.counts, mine))

        def welcome(sock: socket.socket, client: tuple[str, int] | None) -> None:
            stack.enter_context(sock)
            assert door.enter(client)
            if sum(self.counts) == self._many:
                self._all.set()

        await accept(listener, door, welcome)


async def test_a_burst_is_shared() -> None:
    counts = await Party(32, doors=2).run()
    assert max(counts) - min(counts) <= 4


async def test_what_the_others_leave_is_taken() -> None:
    assert await Party(32, doors=1).run() == [32, 0]
