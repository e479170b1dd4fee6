"""Tests that take long are part of ``scripts/faults``, and not of the usual run."""

import os
from collections.abc import Iterable, Sequence
from itertools import chain, islice, repeat
from typing import TypeVar

import pytest

T = TypeVar("T")

IS_LONG_RUN = "SSO_TEST_ROUNDS" in os.environ
PERMISSION_EXAMPLES = 10_000 if IS_LONG_RUN else 120  # random schemas, roles and users
takes_long = pytest.mark.skipif(not IS_LONG_RUN, reason="takes long: run scripts/faults")


def usual_part(items: Iterable[T], count: int, number: int) -> Sequence[T]:
    """Returns all items in a long run, and otherwise ``count`` of them, other ones for the next ``number``."""
    items = list(items)
    if IS_LONG_RUN or count >= len(items):
        return items
    first = number * count % len(items)
    return list(islice(chain.from_iterable(repeat(items, 2)), first, first + count))
