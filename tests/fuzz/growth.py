"""Looks for inputs that reach code of the service which no input of the corpus reaches, and keeps them.

Following each line takes ten times as long as running it, so this is done when a parser has changed, and the inputs of
an ordinary run begin with what was kept.
"""

import sys
import time
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import sso
from tests.fuzz.mutation import Mutator
from tests.fuzz.target import CORPUS, Target, write_corpus

MAX_KEPT_BYTES = 1024  # of one input
MAX_CORPUS_BYTES = 8000  # of one target
_OURS = str(Path(sso.__file__).parent)

Step = tuple[CodeType, int, int]  # a line and the one before it


def grow(target: Target, seconds: float) -> int:
    """Adds inputs to the corpus, and returns how many."""
    corpus = target.corpus
    reached: set[Step] = set()
    for data in corpus:
        reached |= _steps(target, data)
    kept, deadline, seed = 0, time.monotonic() + seconds, time.time_ns()
    while time.monotonic() < deadline:
        seed += 1
        mutator = Mutator(corpus, target.words, MAX_KEPT_BYTES, seed)
        for _ in range(100):
            data = mutator.next_input()
            steps = _steps(target, data)
            if not steps <= reached and sum(map(len, corpus)) + len(data) <= MAX_CORPUS_BYTES:
                reached |= steps
                corpus.append(data)
                kept += 1
    write_corpus(CORPUS / f"{target.name}.txt", set(corpus))
    return kept


def _steps(target: Target, data: bytes) -> set[Step]:
    steps: set[Step] = set()

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(_OURS):
            return None
        previous = frame.f_lineno

        def trace_line(frame: FrameType, _event: str, _argument: Any) -> Any:
            nonlocal previous
            steps.add((frame.f_code, previous, frame.f_lineno))
            previous = frame.f_lineno
            return trace_line

        return trace_line

    sys.settrace(trace)
    try:
        with suppress(*target.refusals):
            target.parse(data)
    finally:
        sys.settrace(None)
    return steps
