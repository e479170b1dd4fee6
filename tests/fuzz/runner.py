"""Runs one target, and says which inputs are findings: an unexpected error, or too much processor time."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from tests.fuzz.mutation import Mutator
from tests.fuzz.target import Target

MAX_CPU_S = 0.020
REPETITIONS = 5  # before an input is called slow: the first time, another process may have interrupted
MAX_FINDINGS = 20
ROUND = 1000  # inputs between two looks at the clock


@dataclass(frozen=True)
class Finding:
    target: str
    data: bytes
    problem: str

    def __str__(self) -> str:
        return f"{self.target}: {self.problem}\n    {self.data[:200]!r}{'…' if len(self.data) > 200 else ''}"


@dataclass
class Run:
    target: Target
    seed: int
    inputs: int = 0
    findings: dict[str, Finding] = field(default_factory=dict)  # one of each kind

    def continue_for(
        self, *, inputs: int = 0, seconds: float = 0, progress: Callable[["Run"], None] = lambda _: None
    ) -> None:
        """Tries this many further inputs, or for so long. Each round has a seed of its own, so a run can be resumed."""
        corpus, deadline = self.target.corpus, time.monotonic() + seconds
        last = self.inputs + inputs
        while (self.inputs < last if inputs else time.monotonic() < deadline) and len(self.findings) < MAX_FINDINGS:
            mutator = Mutator(corpus, self.target.words, self.target.max_bytes, hash((self.seed, self.inputs)))
            for _ in range(min(ROUND, last - self.inputs) if inputs else ROUND):
                self._try(mutator.next_input())
                self.inputs += 1
            progress(self)

    def _try(self, data: bytes) -> None:
        finding = examine(self.target, data)
        if finding is not None:
            self.findings.setdefault(finding.problem.partition(":")[0], finding)


def examine(target: Target, data: bytes) -> Finding | None:
    """Returns the finding that this input is, or None."""
    begin = time.perf_counter()
    try:
        target.parse(data)
    except target.refusals:
        pass
    except Exception as error:
        return Finding(target.name, data, f"{type(error).__name__} in {_place(error)}: {error}")
    if time.perf_counter() - begin > MAX_CPU_S and (seconds := _least_cpu(target, data)) > MAX_CPU_S:
        return Finding(target.name, data, f"slow: {seconds * 1000:.0f} ms for {len(data)} bytes")
    return None


def _least_cpu(target: Target, data: bytes) -> float:
    durations = []
    for _ in range(REPETITIONS):
        begin = time.process_time()
        with suppress(*target.refusals):
            target.parse(data)
        durations.append(time.process_time() - begin)
    return min(durations)


def _place(error: BaseException) -> str:
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return "unknown"
    return f"{traceback.tb_frame.f_code.co_qualname}, line {traceback.tb_lineno}"
