"""The short form of the fuzzer: the corpora, and a few random inputs, the same each time."""

import time

import pytest

from tests.fuzz.runner import MAX_CPU_S, Run, examine
from tests.fuzz.target import CORPUS, Target
from tests.fuzz.targets import TARGETS

INPUTS = 500
MAX_CORPORA_BYTES = 200_000


@pytest.mark.parametrize("name", TARGETS)
async def test_parser_refuses_random_inputs_with_its_own_errors(name: str) -> None:
    target = TARGETS[name]
    findings = [finding for data in target.corpus if (finding := examine(target, data))]
    run = Run(target, seed=1)
    run.continue_for(inputs=INPUTS)
    assert not [*findings, *map(str, run.findings.values())]


def test_every_parser_has_a_small_corpus() -> None:
    assert {file.stem for file in CORPUS.iterdir()} == set(TARGETS)
    assert all(target.corpus for target in TARGETS.values())
    assert sum(file.stat().st_size for file in CORPUS.iterdir()) < MAX_CORPORA_BYTES


def test_unexpected_error_and_slow_input_are_findings() -> None:
    def parse(data: bytes) -> None:
        deadline = time.process_time() + 2 * MAX_CPU_S
        while data.startswith(b"slow") and time.process_time() < deadline:
            pass
        if data.startswith(b"0"):
            int(data)

    target = Target(parse, (UnicodeError,))
    assert examine(target, b"1") is None
    problems = [finding.problem for data in (b"0x", b"slow") if (finding := examine(target, data))]
    assert [problem.partition(" ")[0] for problem in problems] == ["ValueError", "slow:"]
