"""A load generator with an open loop: requests are sent when they are due, whether or not earlier ones were answered.

A latency counts from the moment when the request was due. So a server that stalls is charged for all requests that were
due meanwhile, also for those that a client of a closed loop would not even have sent ("coordinated omission").

One thread and one epoll send everything. The generator records how late it sent each request: if it could not keep the
rate, the figures say so.
"""

import gc
import heapq
import itertools
import select
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from scripts.benchmarks.http_clients import Answer, RequestFailed, Scenario
from scripts.benchmarks.open_loop.connection import Connection, ConnectionLost
from scripts.benchmarks.open_loop.figures import Figures
from scripts.benchmarks.open_loop.schedule import arrivals, mixed

LOOK_S = 0.5  # between two looks for requests that were not answered
REFUSED = "503"
AHEAD_S = 0.05  # from the call until the first request is due


class Planned(NamedTuple):
    """Requests of one kind, one after the other on a connection, as an arrival causes them."""

    kind: str
    scenario: Scenario
    after_s: float = 0.0  # the first one is due so long after the arrival
    held_s: float = 0.0  # the server should hold the answer for so long: the latency counts from the end of that
    again: "Callable[[], Planned] | None" = None  # what follows a refusal with 503; without it, the client gives up


Workload = Mapping[str, Callable[[], Sequence[Planned]]]  # an arrival of a kind; nothing if it cannot be sent now


@dataclass(slots=True, eq=False)
class _Operation:
    planned: Planned
    due: float
    in_closed_loop: bool = False  # the next one starts when this one ends

    @property
    def counted_from(self) -> float:
        return self.due + self.planned.held_s


class Generator:
    def __init__(self, address: tuple[str, int], workload: Workload, *, answer_s: float, connections: int) -> None:
        self._address = address
        self._workload = workload
        self._answer_s = answer_s
        self._free_connections = connections  # that may still be opened
        self._idle: deque[Connection] = deque()
        self._busy: dict[int, tuple[Connection, _Operation]] = {}
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._later: list[tuple[float, int, _Operation]] = []
        self._numbers = itertools.count()
        self._next_look = 0.0
        self._ended_in_closed_loop = 0
        self.epoll = select.epoll()
        self.figures = Figures()

    def add_handler(self, number: int, handler: Callable[[int], None]) -> None:
        """Calls a function for each event of a socket that is registered with ``epoll``."""
        self._handlers[number] = handler

    def remove_handler(self, number: int) -> None:
        del self._handlers[number]

    def run_open(self, rate: float, shares: Mapping[str, int], seconds: float) -> Figures:
        """Sends ``rate`` arrivals per second, then waits for the answers."""
        with self._measured():
            begin = time.perf_counter() + AHEAD_S
            schedule = arrivals(rate, shares, seconds)
            upcoming = next(schedule, None)
            while upcoming or self._later or self._busy:
                now = time.perf_counter()
                while upcoming and begin + upcoming[0] <= now:
                    self._arrive(upcoming[1], begin + upcoming[0])
                    upcoming = next(schedule, None)
                self._turn(begin + upcoming[0] if upcoming else now + LOOK_S)
        self.figures.seconds = seconds  # the rest of the time was a wait for answers
        return self.figures

    def run_closed(self, at_once: int, shares: Mapping[str, int], seconds: float) -> Figures:
        """Keeps so many operations in progress, besides those that the server holds, and sends the next after each."""
        kinds = mixed(shares)
        with self._measured():
            end = time.perf_counter() + seconds
            self._ended_in_closed_loop = at_once
            while time.perf_counter() < end:
                missing, self._ended_in_closed_loop = self._ended_in_closed_loop, 0
                for _ in range(missing):
                    self._arrive(next(kinds), time.perf_counter(), in_closed_loop=True)
                self._turn(0.0 if self._ended_in_closed_loop else min(end, time.perf_counter() + LOOK_S))
        self.figures.seconds = seconds
        answered, self.figures = self.figures, Figures()  # later answers do not count
        self.finish()
        return answered

    def finish(self) -> None:
        """Waits for the answers to everything that was sent."""
        while self._later or self._busy:
            self._turn(time.perf_counter() + LOOK_S)

    def turn_for(self, seconds: float) -> None:
        """Sends nothing, and handles what arrives."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            self._turn(end)

    def close(self) -> None:
        for connection in [*self._idle, *(connection for connection, _ in self._busy.values())]:
            connection.close()
        self.epoll.close()

    @contextmanager
    def _measured(self) -> Iterator[None]:
        self.figures = Figures()
        gc.collect()
        gc.disable()  # a collection would delay what is due
        cpu = time.process_time()
        try:
            yield
        finally:
            self.figures.cpu_seconds = time.process_time() - cpu
            gc.enable()

    def _arrive(self, kind: str, due: float, *, in_closed_loop: bool = False) -> None:
        operations = self._workload[kind]()
        if not operations:
            self.figures.kinds[kind].skipped += 1
            self._ended_in_closed_loop += in_closed_loop
        for planned in operations:
            is_waited_for = in_closed_loop and not planned.held_s and not planned.after_s
            operation = _Operation(planned, due + planned.after_s, is_waited_for)
            if planned.after_s:
                self._start_later(operation)
            else:
                self._start(operation)
        if in_closed_loop and operations and operations[0].held_s:
            self._ended_in_closed_loop += 1

    def _start_later(self, operation: _Operation) -> None:
        heapq.heappush(self._later, (operation.due, next(self._numbers), operation))

    def _start(self, operation: _Operation) -> None:
        try:
            connection = self._idle.popleft() if self._idle else self._connect()
        except ConnectionLost:
            self._fail(operation, "no connection")
            return
        self._busy[connection.number] = connection, operation
        self.figures.lags.append(time.perf_counter() - operation.due)
        self._advance(connection, operation, None)

    def _connect(self) -> Connection:
        if not self._free_connections:
            raise ConnectionLost
        self._free_connections -= 1
        try:
            return Connection(self._address, self.epoll)
        except ConnectionLost:
            self._free_connections += 1
            raise

    def _turn(self, until: float) -> None:
        """Starts what is due, waits for events, at most until this moment, and handles them."""
        now = time.perf_counter()
        while self._later and self._later[0][0] <= now:
            self._start(heapq.heappop(self._later)[2])
        if now >= self._next_look:
            self._next_look = now + LOOK_S
            self._give_up(now)
        if self._later:
            until = min(until, self._later[0][0])
        # epoll waits for whole milliseconds, select for microseconds.
        select.select([self.epoll], [], [], max(0.0, min(until, self._next_look) - time.perf_counter()))
        for number, events in self.epoll.poll(0):
            if number in self._handlers:
                self._handlers[number](events)
            else:
                self._handle(number, events)

    def _handle(self, number: int, events: int) -> None:
        if number not in self._busy:  # the server has closed a connection that nothing uses
            for connection in [one for one in self._idle if one.number == number]:
                self._idle.remove(connection)
                self._drop(connection)
            return
        connection, operation = self._busy[number]
        try:
            answer = connection.read_answer(events)
        except ConnectionLost:
            self._end(connection, operation, "connection closed", reusable=False)
            return
        if answer is not None:
            self._advance(connection, operation, answer)

    def _advance(self, connection: Connection, operation: _Operation, answer: Answer | None) -> None:
        """Sends the next request of the operation, the first one without an answer."""
        reusable = answer is None or not answer.closes
        try:
            request = operation.planned.scenario.send(answer)  # type: ignore[arg-type] # None starts a generator
            if not reusable:
                self._end(connection, operation, "connection closed", reusable=False)
                return
            connection.send(request)
        except StopIteration:
            self._end(connection, operation, "", reusable=reusable)
        except RequestFailed:
            self._end(connection, operation, _failure(answer), reusable=reusable)
        except ConnectionLost:
            self._end(connection, operation, "connection closed", reusable=False)

    def _end(self, connection: Connection, operation: _Operation, failure: str, *, reusable: bool) -> None:
        del self._busy[connection.number]
        if reusable:
            self._idle.append(connection)
        else:
            self._drop(connection)
        latency = time.perf_counter() - operation.counted_from
        if failure == REFUSED:
            self.figures.refusals.append(time.perf_counter() - operation.due)
        if failure:
            self._fail(operation, failure)
        elif latency < 0:
            self._fail(operation, "answered too early")
        else:
            self.figures.kinds[operation.planned.kind].latencies.append(latency)
            self.figures.kinds[operation.planned.kind].counted_from.append(operation.counted_from)
            self._ended_in_closed_loop += operation.in_closed_loop

    def _fail(self, operation: _Operation, failure: str) -> None:
        operation.planned.scenario.close()
        self.figures.kinds[operation.planned.kind].failures[failure] += 1
        self._ended_in_closed_loop += operation.in_closed_loop
        if failure == REFUSED and operation.planned.again:
            following = operation.planned.again()
            self._start_later(_Operation(following, time.perf_counter() + following.after_s))

    def _give_up(self, now: float) -> None:
        for connection, operation in list(self._busy.values()):
            if now > operation.counted_from + self._answer_s:
                self._end(connection, operation, "no answer", reusable=False)

    def _drop(self, connection: Connection) -> None:
        connection.close()
        self._free_connections += 1


def _failure(answer: Answer | None) -> str:
    if answer is None or answer.status < 400:
        return "unexpected answer"
    if answer.status == 503 and "\nretry-after:" not in answer.head.lower():
        return f"{REFUSED} without Retry-After"
    return str(answer.status)
