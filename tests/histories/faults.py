"""Faults that happen to the nodes and the database of a history. Each ends by itself."""

import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import asyncpg

from tests.faults import is_alive, kill
from tests.histories.world import World
from tests.kit import server
from tests.kit.ports import is_listening
from tests.kit.postgres import execute

PAUSE_S = 1.0  # between two faults
SILENCE_S = 1.5
STEPS_S = (-600, -30, 30, 600)
LIMIT_S = 240.0  # on a machine that is very slow


class Faults:
    def __init__(self, world: World, random_numbers: random.Random) -> None:
        self._world = world
        self._random = random_numbers
        self.injected: Counter[str] = Counter()
        self.not_run: dict[str, str] = {}
        self._kinds: tuple[Callable[[], None], ...] = (
            self.kill_worker,
            self.stop_worker_for_a_while,
            self.kill_supervisor,
            self.restart_node,
            self.kill_database,
            self.silence_database,
            self.slow_database,
            self.make_database_read_only,
            self.drop_bus,
            self.replace_workers,
            self.replace_node,
        )
        if world.disk:
            self._kinds += (self.fill_disk,)
        else:
            self.not_run["fill disk"] = "needs root, and the right to mount"
        if world.clock_file:
            self._kinds += (self.step_clock,)
        else:
            self.not_run["step clock"] = "needs libfaketime: apt-get install libfaketime"

    def inject(self, seconds: float, until: Callable[[], bool]) -> None:
        """Injects one fault after the other, all kinds in random order, for so long and until something is true."""
        end, limit = time.monotonic() + seconds, time.monotonic() + seconds + LIMIT_S
        kinds: list[Callable[[], None]] = []
        while time.monotonic() < end or not (until() or time.monotonic() > limit):
            kinds = kinds or self._random.sample(self._kinds, len(self._kinds))
            fault = kinds.pop()
            fault()
            self.injected[fault.__name__.replace("_", " ")] += 1
            time.sleep(PAUSE_S)

    def kill_worker(self) -> None:
        node = self._random.choice(self._world.nodes)
        kill(node.workers()[:1])
        server.until(lambda: len(node.workers()) == 2)

    def stop_worker_for_a_while(self) -> None:
        workers = self._random.choice(self._world.nodes).workers()[:1]
        kill(workers, signal.SIGSTOP)
        time.sleep(SILENCE_S)
        kill(workers, signal.SIGCONT)

    def kill_supervisor(self) -> None:
        """Kills the supervisor and its workers, and starts the node again."""
        node = self._random.choice(self._world.nodes)
        assert node.process is not None
        processes = [node.process.pid, *node.workers()]
        kill(processes)
        node.stop()
        assert server.until(lambda: not any(map(is_alive, processes)))
        host, _, port = node.url.removeprefix("http://").rpartition(":")
        assert server.until(lambda: not is_listening(int(port), host))  # other processes of the node end later
        node.start()

    def restart_node(self) -> None:
        node = self._random.choice(self._world.nodes)
        node.stop()
        node.start()

    def kill_database(self) -> None:
        self._world.database.kill()
        self._world.database.start()

    def silence_database(self) -> None:
        with self._world.database.silent():
            time.sleep(SILENCE_S)

    def slow_database(self) -> None:
        """Lets the database run for a twentieth of the time."""
        end = time.monotonic() + SILENCE_S
        while time.monotonic() < end:
            with self._world.database.silent():
                time.sleep(0.1)
            time.sleep(0.005)

    def fill_disk(self) -> None:
        """PostgreSQL may end when it cannot write its log. Then it is started again, with space."""
        assert self._world.disk is not None
        self._world.disk.fill(SILENCE_S)
        time.sleep(SILENCE_S)
        if not self._world.database.is_running:
            self._world.database.start()

    def step_clock(self) -> None:
        """Moves the clocks of the nodes, not that of the database, and back."""
        assert self._world.clock_file is not None
        for step in (self._random.choice(STEPS_S), 0):
            self._world.clock_file.write_text(f"{step:+}\n")
            time.sleep(SILENCE_S)

    def replace_workers(self) -> None:
        """Reads the settings again, which replaces the workers one by one."""
        node = self._random.choice(self._world.nodes)
        before = set(node.workers())
        assert node.process is not None
        node.process.send_signal(signal.SIGHUP)
        server.until(lambda: len(now := set(node.workers())) == 2 and not before & now)

    def replace_node(self) -> None:
        """Starts the program again while it runs, as for an upgrade."""
        self._random.choice(self._world.nodes).replace()

    def make_database_read_only(self) -> None:
        for value in ("on", "off"):
            with suppress(asyncpg.ReadOnlySQLTransactionError):
                execute(self._world.database.dsn, f"ALTER SYSTEM SET default_transaction_read_only = {value}")
            execute(self._world.database.dsn, "SELECT pg_reload_conf()")
            time.sleep(SILENCE_S)

    def drop_bus(self) -> None:
        sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sso bus'"
        execute(self._world.database.dsn, sql)
