"""Tests that take long are part of ``scripts/faults``, and not of the usual run."""

import os
from typing import Any

import pytest

IS_LONG_RUN = "SSO_TEST_ROUNDS" in os.environ
takes_long = pytest.mark.skipif(not IS_LONG_RUN, reason="takes long: run scripts/faults")


def rare(*values: Any) -> Any:
    """Marks a combination of parameters that only the long run tests."""
    return pytest.param(*values, marks=takes_long)


def usually(usual: int, long: int) -> int:
    """Returns the first number, and in the long run the second."""
    return long if IS_LONG_RUN else usual
