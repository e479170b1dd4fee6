"""The service in a thread of the tests, with a meter of what a request costs and how long it blocks the event loop."""

import socket
import threading
import time
from collections.abc import Awaitable, Callable
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
from sso.metrics import Metrics
from sso.perm.stores.seed import seed_central_application
from sso.serve.http1.server import serve
from sso.services import Services, open_services
from tests.kit.server import Server

REFERENCE_S = 0.0016  # what `calibrate` measures on the machine that the bounds are for
_ROUNDS = 10_000
REPETITIONS = 5


@dataclass(frozen=True)
class Cost:
    """CPU time in seconds."""

    cpu_s: float  # of all threads of the service
    longest_step_s: float  # of a task, before the next task had its turn
    response: httpx.Response

    def exceeds(self, cpu_s: float, step_s: float) -> bool:
        return self.cpu_s > cpu_s or self.longest_step_s > step_s


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

    def run_with_services(self, function: Callable[[Services], Awaitable[None]]) -> None:
        trio.from_thread.run(function, self.services, trio_token=self._token)

    def measure(self, send: Callable[[], httpx.Response]) -> Cost:
        """Returns what the service needs for a request."""
        self._meter.longest_s = 0.0
        process, own = time.process_time(), time.thread_time()
        response = send()
        cpu_s = time.process_time() - process - (time.thread_time() - own)
        return Cost(cpu_s, self._meter.longest_s, response)

    def measure_within(self, cpu_s: float, step_s: float, send: Callable[[], httpx.Response]) -> Cost:
        """Returns the cost of a request, in seconds of the reference machine if it exceeds the bounds.

        Such a request is repeated, and the least costs count: others that use the machine can only add to them.
        """
        cost = self.measure(send)
        for _ in range(REPETITIONS):
            if not cost.exceeds(cpu_s, step_s):
                break
            speed = max(1.0, calibrate() / REFERENCE_S)
            again = self.measure(send)
            cost = Cost(
                min(cost.cpu_s, again.cpu_s / speed),
                min(cost.longest_step_s, again.longest_step_s / speed),
                again.response,
            )
        return cost

    def _run(self) -> None:
        try:
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
                services.hasher.prepare()
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
