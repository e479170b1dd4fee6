"""Runs the mutants of a module, each in a forked process."""

import itertools
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from unittest import mock

import pytest

from tests.kit import postgres
from tests.kit.kept_connection import leave_connections_to_parent
from tests.mutants.exchange import install
from tests.mutants.mutations import Mutant, mutants

OPTIONS = (
    "-x", "-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--timeout=0",
    # Models of the same process have used hypothesis before its plugin is loaded.
    "-W", "ignore:Slow code in plugin",
)  # fmt: skip
MAX_CPU_S = 20  # a mutant may loop for ever
MAX_WAIT_S = 120  # or wait for ever
SURVIVED = 0
PROCESSES = os.cpu_count() or 1


@dataclass
class Score:
    module: str
    killed: int = 0
    survivors: list[str] = field(default_factory=list)  # descriptions of mutants
    seconds: float = 0.0
    known: int = 0  # how many mutants there are

    @property
    def total(self) -> int:
        return self.killed + len(self.survivors)

    @property
    def share(self) -> float:
        return self.killed / self.total if self.total else 1.0


@contextmanager
def shared_postgres() -> Iterator[None]:
    """One PostgreSQL for all modules: to start one takes longer than most tests."""
    with postgres.running() as server:
        _Shared.server = server
        with mock.patch.object(postgres, "running", return_value=nullcontext(server)):
            yield


class _Shared:
    server: postgres.Postgres | None = None


def warm_up(tests: list[str]) -> None:
    """Imports the tests and what they import, so that no other process has to."""
    for test in ["tests/conftest.py", *tests]:
        for file in sorted(Path(test).rglob("test_*.py")) if Path(test).is_dir() else [Path(test)]:
            import_module(".".join(file.with_suffix("").parts))


def score(
    module: str,
    tests: tuple[str, ...],
    equivalent: set[str],
    *,
    every: int = 1,
    seconds: float = 0,
    shuffled: bool = False,
) -> Score:
    """Runs the mutants of a module, except those that are known to be equivalent to it, and at most for so long."""
    source = Path(module).read_text()
    known = [mutant for mutant in mutants(source) if description(source, mutant) not in equivalent]
    chosen = random.sample(known, len(known)) if shuffled else known[::every]
    with tempfile.NamedTemporaryFile() as result:
        loop = _MutantLoop(Score(module, known=len(known)), source, chosen, seconds, Path(result.name))
        child = os.fork()
        if child == 0:  # pytest leaves much behind, which the next module must not see
            try:
                pytest.main([*OPTIONS, *tests], plugins=[loop])
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(0)
        os.waitpid(child, 0)
        text = Path(result.name).read_text()
    if not text:
        raise RuntimeError(f"the tests of {module} fail without any mutant")
    return Score(**json.loads(text))


def description(source: str, mutant: Mutant) -> str:
    """Returns the changed line and the change: it stays the same while lines are added above."""
    line = source.splitlines()[mutant.line - 1].strip() if mutant.line else ""
    return f"{line}  ##  {mutant.change}"


class _MutantLoop:
    """Collects the tests as usual, and then runs them once as they are and once for each mutant."""

    def __init__(self, score: Score, source: str, chosen: list[Mutant], seconds: float, result: Path) -> None:
        self._score = score
        self._source = source
        self._chosen = chosen
        self._seconds = seconds
        self._result = result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if not session.items or not _run(session):
            return True
        module = import_module(self._score.module.removesuffix(".py").replace("/", "."))
        begin = time.monotonic()
        controls = [None] * PROCESSES  # the tests as they are, as many at a time as later: they must pass
        start = partial(self._start, session, module)
        for mutant, status in _statuses([*controls, *self._chosen], start, self._is_over(begin)):
            if mutant is None:
                if status != SURVIVED:
                    return True
                continue
            if status == SURVIVED:
                self._score.survivors.append(description(self._source, mutant))
            else:
                self._score.killed += 1
            self._score.seconds = time.monotonic() - begin
            print(
                f"\r{self._score.module}: {self._score.killed} of {self._score.total} killed …", end="", file=sys.stderr
            )
        self._result.write_text(json.dumps(asdict(self._score)))
        return True

    def _is_over(self, begin: float) -> Callable[[], bool]:
        return lambda: bool(self._seconds) and time.monotonic() - begin > self._seconds

    @staticmethod
    def _start(session: pytest.Session, module: ModuleType, mutant: Mutant | None) -> int:
        """Returns the id of a process that runs the tests, with the mutant if there is one."""
        child = os.fork()
        if child == 0:
            _run_mutant(session, partial(install, module, mutant.tree) if mutant else _nothing)
        return child


def _nothing() -> None:
    """Changes nothing, for a control."""


def _statuses(
    chosen: Sequence[Mutant | None], start: Callable[[Mutant | None], int], is_over: Callable[[], bool]
) -> Iterator[tuple[Mutant | None, int]]:
    """Runs as many mutants at a time as there are processors. Starts no more of them when the time is over."""
    waiting, running = deque(chosen), dict[int, tuple[Mutant | None, float]]()
    while True:
        while waiting and len(running) < PROCESSES and not is_over():
            mutant = waiting.popleft()
            running[start(mutant)] = mutant, time.monotonic() + MAX_WAIT_S
        if not running:
            return
        time.sleep(0.005)
        for child, (mutant, deadline) in list(running.items()):
            status = _status(child, deadline)
            if status is not None:
                del running[child]
                yield mutant, status


def _run(session: pytest.Session) -> bool:
    """Runs all tests until one fails. The first one follows the last one, so what the session has started stays."""
    for item, following in itertools.zip_longest(session.items, session.items[1:], fillvalue=session.items[0]):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return False
    return True


def _run_mutant(session: pytest.Session, prepare: Callable[[], None]) -> None:
    """Ends this process, with the status SURVIVED or another one."""
    status = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S))
        leave_connections_to_parent()
        postgres._numbers = itertools.count(os.getpid() * 1000)  # names of databases
        if _Shared.server is not None:
            _Shared.server._unused.clear()
        prepare()
        session.testsfailed = 0
        status = SURVIVED if _run(session) else 1
    finally:
        os._exit(status)


def _status(child: int, deadline: float) -> int | None:
    """Returns None if the process still runs. It is killed after the deadline."""
    pid, status = os.waitpid(child, os.WNOHANG)
    if pid:
        return os.waitstatus_to_exitcode(status)
    if time.monotonic() > deadline:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return -signal.SIGKILL
    return None
