"""The service in a thread of the tests, with a meter of what a request costs and how long it blocks the event loop."""

import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import httpx
import trio

from sso.app import build_app
from sso.config import load
from sso.db.clock_sync import measure_clock
from sso.health import Health
from sso.perm.stores.seed import seed_central_application
from sso.serve.http1.server import serve
from sso.services import Services, open_services
from sso.telemetry.metrics import Metrics
from tests.cost.queue_meter import QueueMeter
from tests.kit.server import Server, T

REFERENCE_S = 0.0016  # what `calibrate` measures on the machine that the bounds are for
_ROUNDS = 10_000
REPETITIONS = 4


@dataclass(frozen=True)
class Bounds:
    """The most CPU time that a request may need, in seconds."""

    cpu_s: float  # of all threads, without what the queues below do
    step_s: float
    queues: Mapping[str, float]  # by the name of a queue: the limit of the work in its threads


@dataclass(frozen=True)
class Cost:
    """CPU time in seconds."""

    cpu_s: float  # of all threads of the service
    longest_step_s: float  # of a task, before the next task had its turn
    queues: Mapping[str, float]  # of the threads of each queue
    response: httpx.Response

    def exceeds(self, bounds: Bounds) -> bool:
        within_queues = all(self.queues.get(name, 0.0) <= limit for name, limit in bounds.queues.items())
        return self.rest_s(bounds) > bounds.cpu_s or self.longest_step_s > bounds.step_s or not within_queues

    def rest_s(self, bounds: Bounds) -> float:
        """What is not done in a queue that the bounds allow."""
        return self.cpu_s - sum(self.queues.get(name, 0.0) for name in bounds.queues)

    def least(self, other: "Cost", speed: float) -> "Cost":
        """The least of both costs, of which the other one was measured at this speed."""
        queues = {name: min(self.queues.get(name, 0.0), cpu_s / speed) for name, cpu_s in other.queues.items()}
        return Cost(
            min(self.cpu_s, other.cpu_s / speed),
            min(self.longest_step_s, other.longest_step_s / speed),
            queues,
            other.response,
        )

    def text(self, bounds: Bounds) -> str:
        queues = "".join(f", {name} {cpu_s * 1e3:.0f} ms" for name, cpu_s in self.queues.items())
        return (
            f"{self.rest_s(bounds) * 1e3:.0f} ms{queues}, longest step {self.longest_step_s * 1e3:.0f} ms "
            f"(status {self.response.status_code})"
        )


class StepMeter(trio.abc.Instrument):
    """Measures the CPU time of the longest step of a task."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._began = 0.0

    def before_task_step(self, _task: trio.lowlevel.Task) -> None:
        self._began = time.thread_time()

    def after_task_step(self, _task: trio.lowlevel.Task) -> None:
        self.longest_s = max(self.longest_s, time.thread_time() - self._began)


class MeteredServer(Server):
    """One worker in this process. Requests are sent by the thread of the test, whose CPU time is not counted."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        super().__init__(folder, settings)
        self._meter = StepMeter()
        self._queues = QueueMeter()
        self._ready: SimpleQueue[BaseException | None] = SimpleQueue()
        self._stopping = trio.Event()
        self._thread = threading.Thread(target=self._run, name="metered server", daemon=True)

    def start(self, *_options: str) -> None:
        self._thread.start()
        if (failure := self._ready.get()) is not None:
            raise failure

    def stop(self, *_: Any) -> int:
        trio.from_thread.run_sync(self._stopping.set, trio_token=self._token)
        self._thread.join()
        return 0

    def run_with_services(self, function: Callable[[Services], Awaitable[T]]) -> T:
        return trio.from_thread.run(function, self.services, trio_token=self._token)

    def measure(self, send: Callable[[], httpx.Response]) -> Cost:
        """Returns what the service needs for a request."""
        self._meter.longest_s = 0.0
        self._queues.cpu_s = {}
        process, own = time.process_time(), time.thread_time()
        response = send()
        # The response may be sent before the step that has made it is over. The next call waits for its end.
        trio.from_thread.run_sync(lambda: None, trio_token=self._token)
        cpu_s = time.process_time() - process - (time.thread_time() - own)
        return Cost(cpu_s, self._meter.longest_s, self._queues.cpu_s, response)

    def measure_within(self, bounds: Bounds, send: Callable[[], httpx.Response]) -> Cost:
        """Returns the cost of a request, in seconds of the reference machine if it exceeds the bounds.

        Such a request is repeated, and the least costs count: others that use the machine can only add to them.
        """
        cost = self.measure(send)
        for _ in range(REPETITIONS):
            if not cost.exceeds(bounds):
                break
            speed = max(1.0, calibrate() / REFERENCE_S)
            cost = cost.least(self.measure(send), speed)
        return cost

    def _run(self) -> None:
        try:
            with self._queues.watch():
                trio.run(self._serve)
        except BaseException as error:
            self._ready.put(error)

    async def _serve(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            self.base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            settings = load(None, self.settings | {"SSO_BASE_URL": self.base_url})
            async with open_services(settings, self.settings["SSO_DATABASE_URL"]) as services:
                self.services = services
                await services.key_rotation.ensure_signing_keys("RS256", sides=("ES256",))
                await seed_central_application(services.database)
                await measure_clock(services.database)
                await services.keys.load()
                await services.database.open_connections()
                trio.lowlevel.add_instrument(self._meter)
                app = build_app(services, Health(), Metrics())
                await serve(app, [listener], self._stopping, lambda: self._ready.put(None))


def calibrate() -> float:
    """Returns the CPU time that a fixed piece of work takes on this machine now."""
    began, total = time.thread_time(), 0
    for number in range(_ROUNDS):
        total += number * number % 7
    return time.thread_time() - began
